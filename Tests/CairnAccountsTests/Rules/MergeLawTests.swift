import CairnRecords
import CairnTesting
import Testing

@testable import CairnAccounts

@Suite struct MergeLawTests {
  private func content(_ random: SeededRandomness) -> AccountContent {
    var content = AccountContent(id: Make.id(1), fields: [:])
    for name in ["label", "position", "instanceURL", "other"] where random.chance(percent: 70) {
      let values: [FieldValue?] = [
        nil, .string("a"), .string("b"), .int64(Int64(random.below(3))), .double(Double(random.below(3))),
      ]
      let stamp = Stamp(time: Int64(random.below(3)), writer: ["", "v", "w"][random.below(3)])
      content.set(name, values[random.below(values.count)], stamp)
    }
    return content
  }

  @Test("accounts.md A42: versions of an account join to one result in any order and repetition")
  func accountsJoin() {
    let seed: UInt64 = 11
    let random = SeededRandomness(seed: seed)
    for round in 0..<500 {
      let (a, b, c) = (content(random), content(random), content(random))
      #expect(a.merged(with: b) == b.merged(with: a), "seed \(seed), round \(round)")
      #expect(a.merged(with: b).merged(with: c) == a.merged(with: b.merged(with: c)), "seed \(seed), round \(round)")
      #expect(a.merged(with: a) == a && a.merged(with: b).merged(with: b) == a.merged(with: b))
    }
  }

  @Test("accounts.md A33: of any values the same register value wins in every order")
  func registersAreTotallyOrdered() {
    let values = [nil, Make.id(1), Make.id(2)].flatMap { id in
      [0, 1].flatMap { time in
        ["v", "w"].map { RegisterValue(accountID: id, stamp: Stamp(time: time, writer: $0)) }
      }
    }
    for a in values {
      for b in values {
        #expect((a < b ? 1 : 0) + (b < a ? 1 : 0) + (a == b ? 1 : 0) == 1)
        #expect(max(a, b) == max(b, a))
      }
    }
  }

  @Test("accounts.md A34: field stamps are written after everything seen, whatever the clock says")
  func editsAreLater() throws {
    let world = try TestWorld()
    let device = try world.device()
    let future = world.clock.wallClock + 1_000_000_000
    try world.put(Make.account(Make.id(1), label: "future", time: future))
    try device.sync()
    try device.core.edit(Make.id(1), AccountEdit(label: "later"))
    let stamp = try device.state().accounts[Make.id(1)]?.content.fields["label"]?.stamp
    #expect(stamp?.time == future + 1)
    try device.sync()
    #expect(try world.records()["account-\(Make.id(1))"]?.fields["label"] == .string("later"))
  }

  @Test("a field is parsed and written without change; stamps are canonical")
  func roundTrip() throws {
    let record = Make.account(Make.id(1), label: "x", time: 77, writer: "wü")
    guard case .account(let content) = AccountRecordCodec.read(record) else {
      Issue.record("not read")
      return
    }
    #expect(AccountRecordCodec.account(content, nil, in: Make.zone) == record)
    let stored = StateRows.encode(StoredAccount(AccountEntry(content: content)))
    let entry = try StateRows.decode(StoredAccount.self, stored, "k").entry("k")
    #expect(entry.content == content)
  }
}
