import CairnWire
import Foundation
import ProcessSupport
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// Sharing over the wire, with three users (web-services section 12).
@Suite("Sharing over the wire")
struct SharingTests {
  /// Anna is the peer's own user; these come beside.
  private struct Guests {
    let peer: Peer
    let users: UserDirectory

    init(_ transport: Transport) throws {
      peer = try Peer(transport)
      users = UserDirectory(storage: peer.storage, clock: peer.clock)
      for name in ["ben", "cleo"] {
        _ = try users.add(name)
        try users.addToken(hash: WebAuthToken.hash("token-\(name)"), for: name)
        try users.setProfile(
          UserProfile(email: "\(name)@example.org", givenName: name.capitalized, familyName: "Berg"), for: name)
      }
      try users.setProfile(UserProfile(email: "cleo@example.org", isDiscoverable: false), for: "cleo")
    }

    func call(_ name: String, _ operation: String, _ body: String = "{}", in database: String = "shared") throws
      -> Peer.Reply
    {
      try peer.call(
        "POST", "/database/1/iCloud.test/production/\(database)/\(operation)", query: "ckWebAuthToken=token-\(name)",
        [:], Array(body.utf8))
    }

    func open(_ operation: String, _ name: String, _ guid: String) throws -> JSONValue {
      try #require(
        try call(
          name, "records/\(operation)", #"{"shortGUIDs":[{"value":"\#(guid)","shouldFetchRootRecord":true}]}"#,
          in: "public"
        ).list("results").first)
    }
  }

  private static func save(_ name: String, _ more: String, kind: String = "forceUpdate") -> String {
    #"{"operationType":"\#(kind)","record":{"recordName":"\#(name)",\#(more)}}"#
  }

  @discardableResult
  private func share(_ peer: Peer, _ invited: String, permission: String) throws -> JSONValue {
    let participants =
      #"[{"type":"USER","permission":"\#(permission)","userIdentity":{"lookupInfo":{"emailAddress":"\#(invited)"}}}]"#
    return try peer.modify(
      Self.save(
        "S",
        #""recordType":"cloudkit.share","forRecord":{"recordName":"root"},"publicPermission":"NONE","participants":\#(participants)"#
      ))[0]
  }

  @Test(
    "web-services W37: share a root, accept as second user, zone in shared database, permission enforced; uninvited refused",
    arguments: Transport.allCases)
  func sharing(_ transport: Transport) throws {
    let guests = try Guests(transport)
    let peer = guests.peer
    let root = try peer.modify(
      Self.save("root", #""recordType":"Note","createShortGUID":true,"fields":{"t":{"value":"Hut"}}"#),
      Self.save("child", #""recordType":"Note","parent":{"recordName":"root"}"#),
      Self.save("other", #""recordType":"Note""#))
    let guid = try #require(root[0]["shortGUID"]?.string)
    let share = try self.share(peer, "ben@example.org", permission: "READ_ONLY")
    #expect(share["shortGUID"]?.string == guid)
    #expect(share.list("participants").compactMap { $0["acceptanceStatus"]?.string } == ["ACCEPTED", "INVITED"])

    #expect(try guests.open("resolve", "cleo", guid).code == "ACCESS_DENIED")
    #expect(try guests.open("accept", "cleo", guid).code == "ACCESS_DENIED")
    #expect(try guests.open("accept", "ben", "unknown").code == "NOT_FOUND")
    let resolved = try guests.open("resolve", "ben", guid)
    #expect(resolved["participantStatus"]?.string == "INVITED")
    #expect(resolved["rootRecord"]?.field("t").0?.string == "Hut")
    let accepted = try guests.open("accept", "ben", guid)
    #expect(accepted["participantStatus"]?.string == "ACCEPTED")
    #expect(accepted["databaseScope"]?.string == "SHARED")
    #expect(accepted["containerIdentifier"]?.string == "iCloud.test")
    #expect(accepted["share"]?["currentUserParticipant"]?["permission"]?.string == "READ_ONLY")
    let owner = try #require(accepted["zoneID"]?["ownerRecordName"]?.string)

    let zone = #""zoneID":{"zoneName":"Notes","ownerRecordName":"\#(owner)"}"#
    #expect(
      try guests.call("ben", "zones/list").list("zones").map { $0["zoneID"]?["ownerRecordName"]?.string } == [owner])
    #expect(try guests.call("cleo", "zones/list").list("zones").isEmpty)
    let changed = try guests.call("ben", "changes/database").list("zones")
    #expect(changed.map { $0["zoneID"]?["zoneName"]?.string } == ["Notes"])
    let page = try guests.call("ben", "changes/zone", "{\"zones\":[{\(zone)}]}").list("zones")[0]
    #expect(Set(page.names) == ["root", "child", "S"])
    let looked = try guests.call("ben", "records/lookup", #"{"records":[{"recordName":"other"}],\#(zone)}"#)
    #expect(looked.list("records")[0].code == "NOT_FOUND")

    let write =
      "{\(zone),\"operations\":[" + Self.save("child", #""recordType":"Note","fields":{"t":{"value":"x"}}"#) + "]}"
    #expect(try guests.call("ben", "records/modify", write).list("records")[0].code == "ACCESS_DENIED")
    #expect(try guests.call("cleo", "records/modify", write).list("records")[0].code == "ZONE_NOT_FOUND")
    try self.share(peer, "ben@example.org", permission: "READ_WRITE")
    let saved = try guests.call("ben", "records/modify", write).list("records")[0]
    #expect(saved["zoneID"]?["ownerRecordName"]?.string == owner)
    #expect(try peer.changes().names.contains("child"))

    let leave =
      "{\(zone),\"operations\":[" + Self.save("S", #""recordType":"cloudkit.share""#, kind: "forceDelete") + "]}"
    #expect(try guests.call("ben", "records/modify", leave).list("records")[0].isDeleted)
    #expect(try guests.call("ben", "zones/list").list("zones").isEmpty)
    #expect(try peer.changes().names.contains("S"))
  }

  @Test("web-services W38: users/caller tells the caller's name in users[] and on top; discover finds by e-mail and ID")
  func users() throws {
    let guests = try Guests(.inProcess)
    let caller = try guests.call("ben", "users/caller", in: "public")
    let ben = try #require(caller["userRecordName"]?.string)
    #expect(caller["nameComponents"]?["givenName"]?.string == "Ben")
    #expect(caller.list("users")[0]["userRecordName"]?.string == ben)
    #expect(try guests.call("ben", "users/current", in: "public")["lastName"]?.string == "Berg")
    for (operation, body) in [
      ("users/discover", #"{"lookupInfos":[{"emailAddress":"Ben@example.org"},{"emailAddress":"cleo@example.org"}]}"#),
      ("users/lookup/email", #"{"users":[{"emailAddress":"ben@example.org"},{"emailAddress":"no@example.org"}]}"#),
      ("users/lookup/id", #"{"users":[{"userRecordName":"\#(ben)"},{"userRecordName":"_none"}]}"#),
    ] {
      let found = try guests.call("cleo", operation, body, in: "public").list("users")
      #expect(found.map { $0["userRecordName"]?.string } == [ben], "\(operation)")
      #expect(found.first?["nameComponents"]?["familyName"]?.string == "Berg")
    }
    for operation in ["users/discover", "users/lookup/contacts"] {
      #expect(try guests.call("ben", operation, "{}", in: "public").list("users").isEmpty)
    }
    #expect(try guests.call("ben", "users/lookup/email", #"{"users":[{}]}"#, in: "public").code == "BAD_REQUEST")
  }

  @Test("web-services W38: cairn user add and set give a user name and address, one address to one user")
  func commands() throws {
    let folder = try TemporaryFolder()
    let data = folder.file("data")
    func cairn(_ words: String...) throws -> (status: Int32, output: String, error: String) {
      let result = try Programs.runCairn(["user"] + words + ["--data", data])
      return (result.status, result.output, result.error)
    }
    #expect(try cairn("add", "anna", "--email", "Anna@Example.org", "--given-name", "Anna").status == 0)
    #expect(try cairn("set", "anna", "--family-name", "Berg").output.contains("name Anna Berg\nemail anna@example.org"))
    let taken = try cairn("add", "ben", "--email", "anna@example.org")
    #expect(taken.status == 1 && taken.error.contains("anna"))
    #expect(try !cairn("list").output.contains("ben"))
    #expect(try cairn("add", "ben", "--email", "nothing").status == 2)
    #expect(
      try cairn("set", "anna", "--email", "none", "--discoverable", "no").output.contains(
        "email none\nnot discoverable"))
    #expect(try cairn("add", "ben", "--email", "anna@example.org").status == 0)
  }
}
