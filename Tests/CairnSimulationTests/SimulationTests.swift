import Testing

@testable import CairnSimulation

/// DESIGN section 8, 4: random operations, schedules and faults, judged by a model and by invariants.
@Suite struct SimulationTests {
  /// DESIGN G9, tables TS201.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func theSameSeedGivesTheSameRun(seed: UInt64) throws {
    let options = Simulation.Options(seed: seed, devices: 3, steps: 60)
    let first = try Simulation.run(options)
    let second = try Simulation.run(options)
    #expect(first.hash == second.hash)
    #expect(first.trace == second.trace)
  }

  /// Without a judge that can fail, silence means nothing: a value that no program wrote is noticed.
  @Test func theModelNoticesAForeignValue() {
    var model = FieldModel()
    model.note(table: 0, from: [:], to: ["a": [.text("v1")]], device: 0, at: 10)
    model.note(table: 0, from: ["a": [.text("v1")]], to: ["a": [.text("v2")]], device: 0, at: 20)
    #expect(model.mistake(table: 0, in: ["a": [.text("v2")]]) == nil)
    #expect(model.mistake(table: 0, in: ["a": [.text("v1")]]) != nil)
    #expect(model.mistake(table: 0, in: ["a": [.text("v3")]]) != nil)
    #expect(model.mistake(table: 0, in: [:]) != nil)
  }

  /// Tables F3, M5: an edit that saw nothing of a later delete loses; a later one brings the row back.
  @Test func theModelKnowsDeletes() {
    var model = FieldModel()
    model.note(table: 0, from: [:], to: ["a": [.text("v1")]], device: 0, at: 10)
    model.didSync(0, confirmed: true)
    model.note(table: 0, from: ["a": [.text("v1")]], to: [:], device: 0, at: 30)
    model.note(table: 0, from: ["a": [.text("v1")]], to: ["a": [.text("v2")]], device: 1, at: 20)
    #expect(model.mistake(table: 0, in: [:]) == nil)
    #expect(model.mistake(table: 0, in: ["a": [.text("v2")]]) != nil)
    model.note(table: 0, from: ["a": [.text("v1")]], to: ["a": [.text("v3")]], device: 2, at: 40)
    #expect(model.mistake(table: 0, in: ["a": [.text("v3")]]) == nil)
    #expect(model.mistake(table: 0, in: [:]) != nil)
  }

  /// Tables F7: two devices insert the same key and delete it, each before its first sync: nothing remains of either.
  @Test func theModelForgetsTheUnsentRowsOfTwoDevices() {
    var model = FieldModel()
    for device in 0...1 { model.note(table: 0, from: [:], to: ["a": [.text("v\(device)")]], device: device, at: 10) }
    for device in 0...1 { model.note(table: 0, from: ["a": [.text("v\(device)")]], to: [:], device: device, at: 20) }
    #expect(model.voidDeletes == 2)
    #expect(model.mistake(table: 0, in: [:]) == nil)
    #expect(model.mistake(table: 0, in: ["a": [.text("v0")]]) != nil)
  }

  @Test(arguments: RegressionSeeds.fixed)
  func seedsThatFailedOnce(options: Simulation.Options) throws {
    let report = try Simulation.run(options)
    #expect(report.violation == nil, "\(options): \(report.trace.suffix(40).joined(separator: "\n"))")
  }
}
