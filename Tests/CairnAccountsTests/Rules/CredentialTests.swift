import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import Testing

@testable import CairnAccounts

@Suite struct CredentialTests {
  private func pair() throws -> (TestWorld, TestDevice, TestDevice, AccountID) {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try world.settle([a, b], rounds: 2)
    return (world, a, b, id)
  }

  /// What a secure store that syncs by itself would do.
  private func copy(_ id: AccountID, from a: TestDevice, to b: TestDevice) throws {
    let key = CredentialKey.account(try a.scope, id)
    guard case .found(let credential) = try a.credentials.credential(for: key) else { return }
    _ = try b.credentials.replace(credential, for: key)
  }

  @Test(
    "accounts.md S1, S2, A8: the other device has the same ID; with the credential there the badge goes, no new account"
  )
  func s1s2NewLoginTravels() throws {
    let (_, a, b, id) = try pair()
    #expect(b.live == [id])
    #expect(try a.core.needsCredentials(id) == .no)
    #expect(try b.core.needsCredentials(id) == .yes)
    try copy(id, from: a, to: b)
    #expect(try b.core.needsCredentials(id) == .no)
    try b.sync()
    #expect(b.sentNames.isEmpty && b.live == [id])
  }

  @Test("accounts.md S3, A14: a credential that comes before its record is kept and used when the record lands")
  func s3CredentialFirst() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let id = try a.add()
    try copy(id, from: a, to: b)
    try b.sync()
    try b.core.runIntents()
    #expect(b.credentials.has(.account(try b.scope, id)))
    try world.settle([a, b], rounds: 2)
    #expect(try b.core.needsCredentials(id) == .no)
  }

  @Test("accounts.md S5, A9, A8: new logins on one instance get IDs of their own, none the instance's")
  func s5TwoLogins() throws {
    let world = try TestWorld()
    let (a, b) = (try world.device(), try world.device())
    let ids = [try a.add("ada"), try b.add("bob")]
    try world.settle([a, b])
    #expect(a.live == Set(ids) && b.live == Set(ids) && Set(ids).count == 2)
    #expect(!ids.contains(AccountID(migratedFrom: TestDevice.instance)))
  }

  @Test("accounts.md A9: no new ID is an instance's, a used or a deleted one")
  func idsAreFresh() throws {
    var state = ScopeState()
    state.stage([Make.account(Make.id(1)), Make.tombstone(Make.id(2))], [])
    #expect(!state.isFree(Make.id(1), instances: []) && !state.isFree(Make.id(2), instances: []))
    #expect(!state.isFree(AccountID(migratedFrom: Make.instance(3)), instances: [Make.instance(3)]))
    #expect(state.isFree(Make.id(4), instances: [Make.instance(3)]))
  }

  @Test(
    "accounts.md S6, A10: signing in again, or with the same name on the same instance, keeps the ID and adds no record"
  )
  func s6SameUser() throws {
    let (world, a, b, id) = try pair()
    try copy(id, from: a, to: b)
    let before = try world.names()
    try a.core.reauthenticate(id, credential: Credential(userName: nil, secret: Data("new".utf8)))
    #expect(try a.add("ada", secret: "newer") == id)
    try a.sync()
    #expect(try world.names() == before)
    guard case .found(let credential) = try a.core.credential(for: id) else {
      Issue.record("no credential")
      return
    }
    #expect(credential.secret == Data("newer".utf8) && credential.userName == "ada")
  }

  @Test("accounts.md S7, A12: accounts decide for their instance, the flag only where there is none")
  func s7Instances() throws {
    let world = try TestWorld()
    let device = try world.device()
    let id = try device.add(on: TestDevice.instance)
    for flag in [false, true] {
      device.keyValues.instances = [TestDevice.instance, TestDevice.otherInstance].map {
        LegacyInstance(id: $0, service: "s", url: "https://x.example", flag: flag)
      }
      #expect(try device.core.needsCredentials(on: TestDevice.instance) == .no)
      #expect(try device.core.needsCredentials(on: TestDevice.otherInstance) == (flag ? .yes : .no))
    }
    _ = try device.credentials.delete(.account(try device.scope, id))
    #expect(try device.core.needsCredentials(on: TestDevice.instance) == .yes)
    try world.put(Make.marker(TestDevice.otherInstance))
    try device.sync()
    #expect(try device.core.needsCredentials(on: TestDevice.otherInstance) == .no)
  }

  @Test("accounts.md S8, A13: a locked store gives unknown: no badge, no deletion, no upload; unlocked it is right")
  func s8Locked() throws {
    let (_, a, _, id) = try pair()
    a.credentials.setAvailable(false)
    a.cloud.clearLog()
    try a.relaunch()
    #expect(try a.core.needsCredentials(id) == .unknown)
    #expect(try a.core.needsCredentials(on: TestDevice.instance) == .unknown)
    try a.sync()
    #expect(a.sentNames.isEmpty && a.live == [id])
    a.credentials.setAvailable(true)
    #expect(try a.core.needsCredentials(id) == .no)
  }

  @Test("accounts.md S9, A10: a device whose store never syncs signs in there under the same ID")
  func s9LocalCredential() throws {
    let (world, _, b, id) = try pair()
    try b.core.reauthenticate(id, credential: Credential(userName: "ada", secret: Data("mine".utf8)))
    #expect(try b.core.needsCredentials(id) == .no)
    try b.sync()
    #expect(try world.names() == ["account-\(id)"])
  }

  @Test("accounts.md C19, A13: a sign-in cut off after the account needs credentials, and completes under the same ID")
  func halfDoneSignIn() throws {
    let world = try TestWorld()
    let device = try world.device()
    device.credentials.setAvailable(false)
    #expect(throws: AccountsError.self) { try device.add() }
    device.credentials.setAvailable(true)
    let id = try #require(device.live.first)
    #expect(try device.core.needsCredentials(id) == .yes)
    #expect(try device.state().accounts[id]?.isPendingCredential == true)
    #expect(try device.add() == id)
    #expect(try device.core.needsCredentials(id) == .no)
  }

  @Test("accounts.md A15, C15: a fetched tombstone deletes the credential, later where the store is locked")
  func tombstoneDeletesCredential() throws {
    let (_, a, b, id) = try pair()
    try copy(id, from: a, to: b)
    b.credentials.setAvailable(false)
    try a.core.remove(id)
    try a.sync()
    try b.sync()
    b.credentials.setAvailable(true)
    #expect(b.credentials.has(.account(try b.scope, id)))
    try b.relaunch()
    try b.sync()
    #expect(!b.credentials.has(.account(try b.scope, id)))
  }

  @Test("accounts.md A16: a credential of another user name is never used; a legacy item only at its bound revision")
  func wrongUser() throws {
    let (_, a, _, id) = try pair()
    _ = try a.credentials.replace(
      Credential(userName: "mallory", secret: Data([1])), for: .account(try a.scope, id))
    #expect(try a.core.needsCredentials(id) == .yes)
    #expect(try a.core.credential(for: id) == .absent)

    let migrated = AccountID(migratedFrom: TestDevice.otherInstance)
    a.keyValues.instances = [
      LegacyInstance(id: TestDevice.otherInstance, service: "s", url: "https://o.example", flag: true)
    ]
    let legacy = CredentialKey.legacy(TestDevice.otherInstance)
    _ = try a.credentials.replace(Credential(userName: nil, secret: Data([1]), revision: "1"), for: legacy)
    try a.sync()
    #expect(try a.core.needsCredentials(migrated) == .no)
    _ = try a.credentials.replace(Credential(userName: nil, secret: Data([2]), revision: "2"), for: legacy)
    #expect(try a.core.needsCredentials(migrated) == .yes)
  }

  @Test("accounts.md A11, A15: a migrated account falls back to the legacy item and takes it along when it is deleted")
  func legacyFallback() throws {
    let world = try TestWorld()
    let device = try world.device()
    let legacy = CredentialKey.legacy(TestDevice.instance)
    device.keyValues.instances = [
      LegacyInstance(id: TestDevice.instance, service: "s", url: "https://x.example", flag: true)
    ]
    _ = try device.credentials.replace(Credential(userName: "ada", secret: Data([7]), revision: "1"), for: legacy)
    try device.sync()
    let id = AccountID(migratedFrom: TestDevice.instance)
    guard case .found(let credential) = try device.core.credential(for: id) else {
      Issue.record("no fallback")
      return
    }
    #expect(credential.secret == Data([7]))
    #expect(device.credentials.has(legacy) && !device.credentials.has(.account(try device.scope, id)))
    try device.core.remove(id)
    #expect(!device.credentials.has(legacy))
  }

  @Test("accounts.md section 6: credential files are private, replaced at once, and tell unreadable from absent")
  func files() throws {
    let folder = try TemporaryFolder()
    let store = try FileCredentialStore(directory: URL(fileURLWithPath: folder.file("secrets")))
    let key = CredentialKey.account(.identity("a/../b c"), Make.id(1))
    #expect(try store.credential(for: key) == .absent)
    let credential = Credential(userName: "ada", secret: Data("x".utf8), revision: "3")
    #expect(try store.replace(credential, for: key) == .done)
    #expect(try store.credential(for: key) == .found(credential))
    #expect(try store.credential(for: .account(.identity("a"), Make.id(1))) == .absent)
    let names = try FileManager.default.contentsOfDirectory(atPath: store.directory)
    #expect(names.count == 1)
    let file = store.directory + "/" + names[0]
    let modes = try [store.directory, file].map {
      (try FileManager.default.attributesOfItem(atPath: $0)[.posixPermissions] as? Int).map { $0 & 0o777 }
    }
    #expect(modes == [0o700, 0o600])
    // What a dead process left half written is removed; the process number is one that none has.
    try Data("half".utf8).write(to: URL(fileURLWithPath: file + ".99999999.new"))
    _ = try FileCredentialStore(directory: URL(fileURLWithPath: store.directory))
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.directory) == names)
    try Data("broken".utf8).write(to: URL(fileURLWithPath: file))
    #expect(try store.credential(for: key) == .unavailable)
    #expect(try store.delete(key) == .done)
    #expect(try store.delete(key) == .done)
    #expect(try store.credential(for: key) == .absent)
  }
}
