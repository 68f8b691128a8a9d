import Testing

@testable import CairnSimulation

@Suite struct SimulationTests {
  /// DESIGN G9.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func theSameSeedGivesTheSameRun(seed: UInt64) throws {
    let options = Simulation.Options(seed: seed, devices: 3, steps: 60)
    let first = try Simulation.run(options)
    let second = try Simulation.run(options)
    #expect(first.hash == second.hash)
    #expect(first.trace == second.trace)
  }
}
