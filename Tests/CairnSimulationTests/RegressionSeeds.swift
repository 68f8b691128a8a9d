import CairnSimulation

/// Runs that end, or ended once, with a violation. A seed means the same run as long as the generators do; what it
/// found has a scenario of its own too.
enum RegressionSeeds {
  /// Fixed; kept for good.
  static let fixed: [Simulation.Options] = [
    .init(seed: 18, devices: 3, steps: 100, features: [.recursiveTriggers]),
    .init(seed: 39, devices: 3, steps: 100, features: [.recursiveTriggers]),
    .init(seed: 10034, devices: 3, steps: 60, features: .all.subtracting([.recursiveTriggers])),
    .init(seed: 20317, devices: 3, steps: 100, features: .all.subtracting([.recursiveTriggers, .unique])),
    .init(seed: 30130, devices: 4, steps: 60, features: [.manyKeys, .foreignKeys, .unique]),
    .init(seed: 50051, devices: 3, steps: 60, features: .all.subtracting([.recursiveTriggers, .serverRestores])),
    .init(seed: 20362, devices: 3, steps: 100, features: .all.subtracting([.recursiveTriggers, .unique])),
    .init(seed: 500020, devices: 3, steps: 200),
    .init(seed: 500145, devices: 3, steps: 200),
    .init(seed: 600825, devices: 3, steps: 200),
    .init(seed: 1_000_195, devices: 3, steps: 200),
    .init(seed: 1_001_879, devices: 3, steps: 200),
    .init(seed: 770_038, devices: 3, steps: 40),
    .init(seed: 100_000_920, devices: 3, steps: 40),
  ]
}
