import CairnEngine
import CairnRecords
import CairnTesting
import CairnWire
import Foundation
import FuzzSupport
import Testing

@testable import CairnAccounts

/// Records of accounts and stored states, damaged.
@Suite("Damaged accounts") struct AccountsFuzzTests {
  private static let sound: [Record] = [
    Make.account(Make.id(1), label: "one"), Make.account(Make.id(2), label: "two", time: 9, user: "bob"),
    Make.tombstone(Make.id(3)), Make.marker(Make.instance(4)), Make.context(Make.id(1)), Make.context(nil, time: 7),
  ]

  @Test(
    "accounts.md A5, A6: a record is read, kept or parked; what is read is written and read alike",
    .timeLimit(.minutes(10)))
  func records() throws {
    let texts = Self.sound.map { String(decoding: RecordText.encode($0), as: UTF8.self) }
    try Fuzz.run("account records", count: 2_000) { mutator in
      mutator.mutant(of: mutator.one(of: texts), others: texts)
    } _: { text in
      let record: Record
      do { record = try RecordText.decode(Array(text.utf8), in: Make.zone) } catch { return }
      guard case .account(let content) = AccountRecordCodec.read(record) else { return }
      let again = AccountRecordCodec.read(AccountRecordCodec.account(content, nil, in: Make.zone))
      guard case .account(let read) = again else { throw Fuzz.Failure(description: "it is written as \(again)") }
      try Fuzz.demand(read.fields == content.fields, "it is written as \(read)")
      try Fuzz.demand(content.merged(with: read) == content, "merged with itself it is another")
    }
  }

  @Test("accounts.md section 2: stamps of fields", .timeLimit(.minutes(10)))
  func stamps() throws {
    let texts = [#"{"label":[5,"w"],"position":[9007199254740991,""]}"#, "{}"].map { Array($0.utf8) }
    try Fuzz.run("fieldStamps", count: 2_000) { mutator in
      mutator.mutant(of: mutator.one(of: texts))
    } _: { bytes in
      guard let stamps = FieldStamps.decode(bytes) else { return }
      try Fuzz.demand(FieldStamps.decode(FieldStamps.encode(stamps)) == stamps, "they are written as others")
      try Fuzz.demand(stamps.values.allSatisfy { StampClock.isValid($0.time) }, "a time is out of range")
    }
  }

  @Test("accounts.md A34: after the greatest time that can be stored comes the greatest time of the format")
  func greatestTime() {
    #expect(StampClock.time(now: 1, newestSeen: .max) == StampClock.formatCeiling)
    #expect(StampClock.time(now: .min, newestSeen: .min) == 0)
  }

  @Test(
    "accounts.md A56: a stored state is read, or its damage is said; edits go on with what was read",
    .timeLimit(.minutes(10)))
  func states() throws {
    let device = try TestWorld().device()
    let id = try device.add()
    try device.add("bob")
    try device.sync()
    try device.core.select(id, in: .main)
    let gone = try device.add("gone")
    try device.core.remove(gone)
    let rows = try StateRows.difference(nil, try device.core.file.read()).compactMapValues { $0 }
    let addresses = rows.keys.sorted { ($0.scope, $0.key) < ($1.scope, $1.key) }
    let values = addresses.compactMap { rows[$0] }
    #expect(rows.count > 6)
    try Fuzz.run("stored accounts", count: 800) { mutator -> StateRows.Rows in
      var damaged = rows
      for _ in 0...mutator.index(2) {
        let address = mutator.one(of: addresses)
        switch mutator.index(5) {
        case 0: damaged[address] = nil
        case 1:
          damaged[.init(scope: address.scope, key: mutator.mutant(of: address.key))] = damaged.removeValue(
            forKey: address)
        default: damaged[address] = mutator.mutant(of: damaged[address] ?? "", others: values)
        }
      }
      return damaged
    } _: { damaged in
      var state: AccountsState
      do { state = try StateLoader.load(damaged).state } catch { return }
      guard let scope = state.scope else { return }
      let moment = EditMoment(now: 5_000, writer: "w")
      for id in state[scope].accounts.keys.sorted() { _ = state[scope].edit(id, AccountEdit(label: "x"), moment) }
      state[scope].select(state[scope].accounts.keys.min(), in: .main, moment)
      _ = try StateRows.difference(nil, state)
    }
  }
}
