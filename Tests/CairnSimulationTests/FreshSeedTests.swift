import Testing

@testable import CairnSimulation

/// Runs that nobody has seen before, a few hundred of them or as many as the time allows.
@Suite struct FreshSeedTests {
  private static let runs = 300
  /// Enough that every situation comes up; fewer prove nothing about those that did not.
  private static let runsForCoverage = 200
  private static let timeLimit = Duration.seconds(40)

  @Test func freshRunsHaveNoViolationAndMeetEverySituation() throws {
    let first = UInt64.random(in: 0..<1 << 32)
    let start = ContinuousClock.now
    var coverage = Coverage()
    var done = 0
    while done < Self.runs && ContinuousClock.now - start < Self.timeLimit {
      let options = Simulation.Options(seed: first + UInt64(done), devices: 3, steps: 40)
      let report = try Simulation.run(options)
      coverage.add(report.coverage)
      done += 1
      guard report.violation != nil else { continue }
      let shortest = try Simulation.shrink(options, tries: 200) ?? report
      Issue.record(
        "cairn simulate --seed \(options.seed) --steps 40\n\(shortest.trace.joined(separator: "\n"))")
      return
    }
    guard done >= Self.runsForCoverage else { return }
    let missing = coverage.missing
    #expect(missing.isEmpty, "never seen in \(done) runs from seed \(first): \(missing)")
  }
}
