import CairnRecords
import CairnTesting
import Testing

@testable import CairnAccounts

@Suite struct ContextTests {
  private func three() throws -> (TestWorld, TestDevice, TestDevice, AccountID, AccountID) {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let (x, y) = (try a.add("x"), try a.add("y"))
    try world.settle([a, b], rounds: 2)
    return (world, a, b, x, y)
  }

  @Test(
    "accounts.md S29, A27, A36: a newer choice of a deleted account leaves all on the fallback, without a correcting upload"
  )
  func s29ChoiceOfADeletedAccount() throws {
    let (world, a, b, x, _) = try three()
    try b.core.select(x)
    try b.sync()
    try a.core.remove(x)
    try a.sync()
    try world.settle([a, b])
    #expect(a.choice == nil && b.choice == nil)
    #expect(!a.sentNames.contains("context-main"))
    b.cloud.clearLog()
    try world.settle([a, b])
    #expect(b.sentNames.isEmpty)
  }

  @Test("accounts.md A27, A82: a choice made offline of an account deleted elsewhere changes nothing anywhere")
  func offlineChoiceOfADeletedAccount() throws {
    let (world, a, b, x, y) = try three()
    try a.core.select(y)
    try world.settle([a, b], rounds: 2)
    try a.core.remove(x)
    try b.core.select(x)
    #expect(b.choice == x)
    try a.sync()
    let before = try world.records()["context-main"]
    try world.settle([b, a])
    #expect(a.choice == y && b.choice == y)
    #expect(try world.records()["context-main"] == before)
  }

  @Test("accounts.md S30, A27, A28: the tombstone of the chosen account puts the device on the fallback at once")
  func s30TombstoneAfterChoice() throws {
    let (_, a, b, x, _) = try three()
    try a.core.select(x)
    try a.sync()
    try b.sync()
    #expect(b.choice == x)
    try a.core.remove(x)
    #expect(a.choice == nil)
    try a.sync()
    try b.sync()
    #expect(b.choice == nil)
  }

  @Test("accounts.md S31, A35: a choice of an unknown account keeps the old one until the account comes")
  func s31ChoiceBeforeAccount() throws {
    let (world, a, _, x, _) = try three()
    try a.core.select(x)
    try a.sync()
    let late = Make.id(9)
    try world.put(Make.context(late, time: world.clock.wallClock + 50))
    try a.sync()
    #expect(a.choice == x && a.live.count == 2)
    try world.put(Make.account(late))
    try a.sync()
    #expect(a.choice == late)
  }

  @Test("accounts.md A35: where the present choice is deleted meanwhile the fallback holds until the account comes")
  func unknownChoiceAfterADeletion() throws {
    let (world, a, _, x, _) = try three()
    try a.core.select(x)
    try a.sync()
    try world.put(Make.context(Make.id(9), time: world.clock.wallClock + 50))
    try a.sync()
    try a.core.remove(x)
    #expect(a.choice == nil)
  }

  @Test("accounts.md S32, A33: choices at the same time end with one winner and bounded uploads")
  func s32SameTime() throws {
    let (world, a, b, x, y) = try three()
    try a.core.select(x)
    try b.core.select(y)
    a.cloud.clearLog()
    b.cloud.clearLog()
    try world.settle([a, b])
    #expect(a.choice == b.choice && a.choice != nil)
    #expect((a.sentNames + b.sentNames).count { $0 == "context-main" } <= 3)
  }

  @Test("accounts.md S33, A34: a later choice wins over one by a clock far ahead")
  func s33ClockAhead() throws {
    let world = try TestWorld()
    let a = try world.device(skew: 40_000_000_000_000)
    let b = try world.device()
    let (x, y) = (try a.add("x"), try a.add("y"))
    try a.core.select(x)
    try world.settle([a, b], rounds: 2)
    try b.core.select(y)
    try world.settle([b, a])
    #expect(a.choice == y && b.choice == y)
  }

  @Test("accounts.md S34, A36: a device without the credential writes no choice")
  func s34NoCorrectionIsUploaded() throws {
    let (world, a, b, x, _) = try three()
    try a.core.select(x)
    try world.settle([a, b])
    #expect(try b.core.needsCredentials(x) == .yes)
    #expect(!b.sentNames.contains("context-main"))
    #expect(a.choice == x)
  }

  @Test("accounts.md A33, A36: an explicit choice of none is a choice")
  func noneIsAChoice() throws {
    let (world, a, b, x, _) = try three()
    try a.core.select(x)
    try world.settle([a, b])
    try b.core.select(nil)
    try world.settle([a, b])
    #expect(a.choice == nil && b.choice == nil)
    #expect(try world.records()["context-main"]?.fields["accountID"] == nil)
  }

  @Test("a deleted or unknown account can't be chosen")
  func choosingNothing() throws {
    let (_, a, _, x, _) = try three()
    try a.core.remove(x)
    #expect(throws: AccountsError.notFound(x)) { try a.core.select(x) }
  }
}
