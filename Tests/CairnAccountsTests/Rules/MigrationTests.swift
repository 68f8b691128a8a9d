import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

@Suite struct MigrationTests {
  private let x = TestDevice.instance
  private var id: AccountID { AccountID(migratedFrom: x) }

  private func flag(_ device: TestDevice, _ isSet: Bool = true) {
    device.keyValues.instances = [LegacyInstance(id: x, service: "s", url: "https://x.example", flag: isSet)]
  }

  private func item(_ device: TestDevice) throws {
    _ = try device.credentials.replace(Credential(userName: "ada", secret: Data([1]), revision: "1"), for: .legacy(x))
  }

  @Test("accounts.md S4, A2, A7: two devices that migrate one login offline meet in one account and one marker")
  func s4BothMigrate() throws {
    let world = try TestWorld()
    let devices = [try world.device(), try world.device()]
    for device in devices {
      try device.sync()
      flag(device)
      try item(device)
      device.cloud.isOffline = true
      try device.core.migrateLegacyLogins()
      #expect(device.live == [id])
      device.cloud.isOffline = false
    }
    try world.settle(devices)
    #expect(try world.names() == ["account-\(id)", "marker-\(x)"])
    #expect(devices.allSatisfy { $0.live == [id] })
  }

  @Test("accounts.md S10, A17: nothing that the user does changes the flag: the store of flags has no setter")
  func s10FlagIsNeverWritten() throws {
    let world = try TestWorld()
    let device = try world.device()
    flag(device, false)
    let before = device.keyValues.instances
    let id = try device.add()
    try device.core.edit(id, AccountEdit(label: "x"))
    try device.core.remove(id)
    try device.sync()
    #expect(device.keyValues.instances == before)
  }

  @Test("accounts.md S11, A18, A76: a flag known before a full fetch that shows no account makes exactly one account")
  func s11FlagThenFetch() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    try world.put(Make.tombstone(Make.id(9)))
    for device in [a, b] { try device.sync() }
    flag(b)
    // The first look records the flag; only a fetch that begins after it counts.
    #expect(try b.core.migrateLegacyLogins().waiting == [x])
    try b.sync()
    #expect(b.live == [id])
    try world.settle([a, b])
    #expect(a.live == [id])
    #expect(try world.names().isSuperset(of: ["account-\(id)", "marker-\(x)"]))
  }

  @Test("accounts.md S12, A18: a flag beside a random account and marker that are not fetched yet proves nothing")
  func s12FlagBesideANewAccount() throws {
    let world = try TestWorld()
    try world.put(Make.account(Make.id(1), instance: x))
    try world.put(Make.marker(x))
    let device = try world.device()
    flag(device)
    try world.settle([device])
    #expect(device.live == [Make.id(1)])
    #expect(try !world.names().contains("account-\(id)"))
  }

  @Test("accounts.md A18: a flag beside a random account proves nothing, even without marker")
  func flagBesideAnAccount() throws {
    let world = try TestWorld()
    try world.put(Make.account(Make.id(1), instance: x))
    let device = try world.device()
    flag(device)
    try world.settle([device])
    #expect(device.live == [Make.id(1)])
  }

  @Test("accounts.md S13, A19: a marker that comes after the migration retracts nothing")
  func s13MarkerLater() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    flag(device)
    try item(device)
    try device.core.migrateLegacyLogins()
    try world.put(Make.marker(x))
    try world.settle([device])
    #expect(device.live == [id])
    #expect(try world.names() == ["account-\(id)", "marker-\(x)"])
  }

  @Test(
    "accounts.md S14, A12, A18, A20: with a tombstone and a flag a fresh install has no account, no badge, and adds the marker"
  )
  func s14TombstoneAndFlag() throws {
    let world = try TestWorld()
    try world.put(Make.tombstone(id))
    let device = try world.device()
    flag(device)
    try world.settle([device])
    #expect(device.live.isEmpty)
    #expect(try device.core.needsCredentials(on: x) == .no)
    #expect(try world.names() == ["tombstone-\(id)", "marker-\(x)"])
  }

  @Test(
    "accounts.md S15, A18, A48: without a finished bootstrap nothing migrates; afterwards the server's content decides")
  func s15NoBootstrap() throws {
    for isMarked in [false, true] {
      let world = try TestWorld()
      if isMarked { try world.put(Make.marker(x)) }
      let device = try world.device()
      flag(device)
      try item(device)
      device.cloud.isOffline = true
      try device.sync()
      #expect(device.live.isEmpty)
      device.cloud.isOffline = false
      try world.settle([device], rounds: 2)
      #expect(device.live == (isMarked ? [] : [id]))
    }
  }

  @Test("accounts.md S16, A21, C16: a crash at the migration's commit leaves account and marker, or neither")
  func s16OneCommit() throws {
    for dies in [true, false] {
      let world = try TestWorld()
      let device = try world.device()
      try device.sync()
      flag(device)
      try item(device)
      if dies { device.border.diesAt = device.border.commits + 1 }
      if dies {
        #expect(throws: AccountsError.self) { try device.core.migrateLegacyLogins() }
      } else {
        let before = device.border.commits
        try device.core.migrateLegacyLogins()
        #expect(device.border.commits == before + 1)
      }
      try device.relaunch()
      let state = try device.state()
      #expect((state.accounts[id] != nil) == !dies && (state.markers[x] != nil) == !dies)
      try world.settle([device], rounds: 2)
      #expect(try world.names() == ["account-\(id)", "marker-\(x)"])
    }
  }

  @Test("accounts.md S17, A22: a flag that goes and comes after the marker changes nothing")
  func s17FlagFlips() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.sync()
    flag(device)
    try item(device)
    try device.sync()
    try device.core.remove(id)
    try world.settle([device], rounds: 2)
    let before = try world.names()
    for isSet in [true, false, true] {
      flag(device, isSet)
      try device.sync()
      #expect(device.live.isEmpty)
    }
    #expect(try world.names() == before)
  }

  @Test(
    "accounts.md S18, A23: evidence read under one identity counts under no other, and an account change is ignored")
  func s18EvidenceHasAnIdentity() throws {
    let world = try TestWorld()
    for user in ["anna", "bob"] { try world.put(Make.tombstone(Make.id(9)), user) }
    let device = try world.device("anna")
    try device.sync()
    flag(device)
    #expect(try device.core.migrateLegacyLogins(.accountChange).waiting.isEmpty)
    #expect(try device.state().flagsSeen.isEmpty)
    try device.core.migrateLegacyLogins()
    try device.relaunch(identity: .unresolved)
    #expect(throws: AccountsError.unresolvedIdentity) { try device.core.migrateLegacyLogins() }
    try device.signIn("bob")
    flag(device, false)
    try device.sync()
    flag(device)
    #expect(try device.core.migrateLegacyLogins().migrated.isEmpty)
    #expect(device.live.isEmpty)
  }

  @Test("accounts.md A18, A58, A11: in the local scope only a present legacy credential is evidence")
  func localScope() throws {
    let world = try TestWorld()
    let device = try world.device()
    try device.signOut()
    flag(device)
    #expect(try device.core.migrateLegacyLogins().waiting == [x])
    try item(device)
    #expect(try device.core.migrateLegacyLogins().migrated == [id])
    try device.signIn("anna")
    try device.sync()
    // The flag and a full fetch are evidence under an identity; the item belongs to the scope that used it first.
    #expect(device.live == [id])
    #expect(try device.core.needsCredentials(id) == .yes)
  }

  @Test(
    "accounts.md A57, A55, A18: after a need that was raised under another identity nothing migrates before the bootstrap"
  )
  func needOfAnotherIdentity() throws {
    let world = try TestWorld()
    let device = try world.device("anna")
    try device.sync()
    try device.signIn("bob")
    try device.sync()
    try SyncSession.raiseNeed(of: "accounts", in: device.core.engineStore)
    try device.signIn("anna")
    flag(device)
    try item(device)
    #expect(try device.core.migrateLegacyLogins().waiting == [x])
    try device.sync()
    #expect(device.live == [id])
  }

  @Test("accounts.md A18: staged and unreadable records of the instance count as known")
  func unreadableCounts() throws {
    let world = try TestWorld()
    var wrong = Make.account(id)
    wrong.fields["service"] = nil
    try world.put(wrong)
    let device = try world.device()
    flag(device)
    try item(device)
    try world.settle([device], rounds: 2)
    #expect(device.live.isEmpty)
    #expect(try device.state().isKnown(id))
  }

  @Test("accounts.md A20: a deleted migrated account keeps its marker and is not migrated again")
  func deletedStaysDeleted() throws {
    let world = try TestWorld()
    let device = try world.device()
    flag(device)
    try item(device)
    try world.settle([device], rounds: 2)
    try device.core.remove(id)
    try item(device)
    try world.settle([device], rounds: 2)
    #expect(device.live.isEmpty)
    #expect(try world.names().isSuperset(of: ["marker-\(x)", "tombstone-\(id)"]))
  }
}
