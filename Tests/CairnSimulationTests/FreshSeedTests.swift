import Testing

@testable import CairnSimulation

/// Runs that nobody has seen before, a few hundred of them or as many as the time allows; and that what runs meet is
/// all that they should.
@Suite struct FreshSeedTests {
  private static let runs = 300
  private static let timeLimit = Duration.seconds(40)
  /// A third of them meets every situation.
  private static let seedsForCoverage = 1...60 as ClosedRange<UInt64>

  @Test func freshRunsHaveNoViolation() throws {
    let first = UInt64.random(in: 0..<1 << 32)
    let start = ContinuousClock.now
    for seed in first..<first + UInt64(Self.runs) where ContinuousClock.now - start < Self.timeLimit {
      let options = Simulation.Options(seed: seed, devices: 3, steps: 40)
      let report = try Simulation.run(options)
      guard report.violation != nil else { continue }
      let shortest = try Simulation.shrink(options, tries: 200) ?? report
      Issue.record("cairn simulate --seed \(seed) --steps 40\n\(shortest.trace.joined(separator: "\n"))")
      return
    }
  }

  /// Silence proves nothing about situations that do not come up. The same runs every time: chance must not decide it.
  @Test func theFirstSeedsMeetEverySituation() throws {
    var coverage = Coverage()
    for seed in Self.seedsForCoverage where !coverage.missing.isEmpty {
      coverage.add(try Simulation.run(Simulation.Options(seed: seed, devices: 3, steps: 200)).coverage)
    }
    #expect(coverage.missing.isEmpty, "never seen in the runs of seeds \(Self.seedsForCoverage): \(coverage.missing)")
  }
}
