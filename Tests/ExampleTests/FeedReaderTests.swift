import CairnAccounts
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import Testing

@testable import FeedReader

/// The example app: release 1 is upgraded on two devices of one user.
@Suite struct FeedReaderTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder
  private let server: InMemoryServer
  private static let zone = ZoneID(name: "reader")

  init() throws {
    folder = try TemporaryFolder()
    server = try InMemoryServer(clock: clock)
  }

  private func reader(_ device: String) throws -> Reader {
    let seed = device.utf8.reduce(UInt64(17)) { $0 &* 31 &+ UInt64($1) }
    return try Reader(
      folder: url(device), service: DemoService(), time: clock, randomness: SeededRandomness(seed: seed))
  }

  private func url(_ device: String) throws -> URL {
    let url = URL(fileURLWithPath: folder.file(device))
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }

  private func sync(_ readers: Reader...) throws {
    let cloud = try server.cloud(user: "anna")
    let user = try cloud.currentUser()
    for _ in 0..<3 {
      clock.advance(seconds: 1)
      for reader in readers { #expect(try reader.sync(as: user, with: cloud).state == "ready") }
    }
  }

  @Test(
    "accounts.md A7, A18, A17, S4: release 1's login becomes one account on both devices, readable on both, flags untouched"
  )
  func upgradeOnTwoDevices() async throws {
    let social = try #require(Instance.at("https://social.example"))
    var flags: [Data?] = []
    for device in ["phone", "laptop"] {
      try LegacyReader(folder: url(device)).logIn(to: social, as: "ada", secret: "old")
      flags.append(FileManager.default.contents(atPath: folder.file(device) + "/flags.json"))
    }
    let (phone, laptop) = (try reader("phone"), try reader("laptop"))
    // Before anybody has signed in to the cloud, the login works in the local scope.
    let id = AccountID(migratedFrom: social.id)
    #expect(phone.accounts.snapshot.accounts.map(\.id) == [id])
    try sync(phone, laptop)
    for device in [phone, laptop] {
      #expect(device.accounts.snapshot.accounts.map(\.id) == [id])
      #expect(device.accounts.snapshot.accounts.map(\.userName) == ["ada"])
      #expect(try await device.timeline(of: id) == ["@ada: good morning"])
    }
    let names = try server.cloud(user: "anna").allRecords(in: Self.zone).map(\.id.name)
    #expect(Set(names) == ["account-\(id)", "marker-\(social.id)"])
    let after = ["phone", "laptop"].map { FileManager.default.contents(atPath: folder.file($0) + "/flags.json") }
    #expect(after == flags)
  }

  @Test(
    "accounts.md A8, A10, A15, A73: a new login travels without its secret; deleting it takes its private feed everywhere"
  )
  func newLoginAndDeletion() async throws {
    let feeds = try #require(Instance.at("https://feeds.example"))
    let (phone, laptop) = (try reader("phone"), try reader("laptop"))
    try sync(phone, laptop)
    let account = try await phone.logIn(to: feeds, as: "ada", secret: "new")
    try phone.accounts.select(account.id)
    try sync(phone, laptop)
    #expect(try laptop.overview().first?.contains("(sign in)") == true)
    #expect(laptop.accounts.snapshot.choices[.main] == account.id)
    #expect(try await laptop.timeline(of: account.id).isEmpty)
    #expect(try await laptop.logIn(to: feeds, as: "ada", secret: "new").id == account.id)
    #expect(try await laptop.timeline(of: account.id).count == 2)
    let cache = folder.file("laptop") + "/timelines.json"
    #expect(try String(contentsOfFile: cache, encoding: .utf8).contains("the weather"))
    await #expect(throws: Refused.self) { try await phone.logIn(to: feeds, as: "bob", secret: "wrong") }

    try phone.accounts.remove(account.id)
    try sync(phone, laptop)
    #expect(try laptop.overview().isEmpty)
    #expect(try !String(contentsOfFile: cache, encoding: .utf8).contains("the weather"))
    #expect(laptop.accounts.snapshot.choices.isEmpty)
  }
}
