import CairnSimulation

/// Runs that ended with a violation once, kept for good. A seed means the same run as long as the generators do; what it
/// found has a scenario of its own too.
enum RegressionSeeds {
  static let all: [Simulation.Options] = [
    .init(seed: 18, devices: 3, steps: 100, features: []),
    .init(seed: 39, devices: 3, steps: 100, features: []),
    .init(seed: 3003, devices: 3, steps: 80, features: [.manyKeys, .foreignKeys]),
  ]
}
