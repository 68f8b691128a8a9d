import CairnTesting
import CairnWire
import Foundation
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// Web-services section 11, assets, as clients of the protocol see them.
@Suite struct AssetTests {
  /// Asks for an address, sends bytes there, and gives the dictionary for the field, as JSON.
  private func upload(
    _ bytes: [UInt8], to name: String, field: String = "cover", _ peer: Peer, headers: [String: String] = [:]
  ) throws -> (json: String, reply: Peer.Reply, url: String) {
    let answer = try peer.post(
      "assets/upload",
      #"{"zoneID":{"zoneName":"Notes"},"tokens":[{"recordName":"\#(name)","recordType":"Note","fieldName":"\#(field)"}]}"#
    )
    let token = try #require(answer.list("tokens").first)
    #expect(token["recordName"]?.string == name)
    #expect(token["fieldName"]?.string == field)
    let url = try #require(token["url"]?.string)
    let reply = try peer.call("POST", try path(url), query: "", headers, bytes)
    let file = reply["singleFile"] ?? .null
    return (String(decoding: file.encoded, as: UTF8.self), reply, url)
  }

  /// The path of an address that this server gave out.
  private func path(_ url: String) throws -> String {
    let rest = try #require(url.firstRange(of: "://")).upperBound
    return String(url[try #require(url[rest...].firstIndex(of: "/"))...])
  }

  private func address(of record: JSONValue, _ field: String = "cover") -> String? {
    record["fields"]?[field]?["value"]?["downloadURL"]?.string
  }

  private func download(_ url: String, _ peer: Peer) throws -> Peer.Reply {
    try peer.call("GET", try path(url), query: "")
  }

  /// The text with another character in the middle of its last 80.
  private func damaged(_ text: String) -> String {
    let end = text.suffix(40)
    let head = text.dropLast(41)
    return head + (text.dropLast(40).hasSuffix("A") ? "B" : "A") + end
  }

  private let picture = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }

  @Test("W33: an upload's bytes come back", arguments: Transport.allCases)
  func roundTrip(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let (asset, reply, _) = try upload(picture, to: "a", peer)
    #expect(reply["singleFile"]?["size"] == .integer(Int64(picture.count)))
    let saved = try peer.save("a", #"{"cover":{"value":\#(asset)}}"#)
    #expect(saved.code == nil)
    #expect(saved["fields"]?["cover"]?["type"]?.string == "ASSETID")
    let fetched = try #require(try peer.changes().list("records").first)
    #expect(fetched["fields"]?["cover"]?["value"]?["receipt"] == nil)
    let answer = try download(try #require(address(of: fetched)), peer)
    #expect(answer.status == 200)
    #expect(answer.body == picture)
    #expect(answer.headers["content-type"] == "application/octet-stream")
    // An update of another field keeps the asset, and so does sending it back as it was answered.
    let tag = try #require(fetched["recordChangeTag"]?.string)
    let update = try peer.modify(
      #"{"operationType":"update","record":{"recordName":"a","recordChangeTag":"\#(tag)","fields":{"n":{"value":1}}}}"#)
    #expect(address(of: update[0]) != nil)
    let back = String(decoding: fetched["fields"]?["cover"]?.encoded ?? [], as: UTF8.self)
    #expect(try peer.save("a", #"{"cover":\#(back)}"#).code == nil)
  }

  @Test("W33: multipart/form-data, the part 'files'", arguments: Transport.allCases)
  func multipart(_ transport: Transport) throws {
    let peer = try Peer(transport)
    // Contains what looks like a boundary.
    let content = Array("first\r\n--Xy\r\n--X".utf8) + [0, 255, 13, 10]
    let head =
      "--Xyz\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--Xyz\r\n"
      + "Content-Disposition: form-data; name=\"files\"; filename=\"a.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
    let body = Array(head.utf8) + content + Array("\r\n--Xyz--\r\n".utf8)
    let (asset, _, _) = try upload(
      body, to: "a", peer, headers: ["Content-Type": "multipart/form-data; boundary=Xyz"])
    let saved = try peer.save("a", #"{"cover":{"value":\#(asset)}}"#)
    #expect(try download(try #require(address(of: saved)), peer).body == content)
    let cut = try upload(
      Array(body.prefix(body.count - 20)), to: "a", peer, headers: ["Content-Type": "multipart/form-data; boundary=Xyz"]
    )
    #expect(cut.reply.status == 400)
  }

  @Test("W33: forged and foreign receipts are refused, and nothing is stored", arguments: Transport.allCases)
  func receipts(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let (asset, _, _) = try upload([1, 2, 3], to: "a", peer)
    func reason(_ name: String, _ fields: String) throws -> String? {
      let entry = try peer.save(name, fields)
      #expect(entry.code == "BAD_REQUEST")
      return entry["reason"]?.string
    }
    let bad = "bad upload receipt (did_not_validate)"
    #expect(try reason("b", #"{"cover":{"value":\#(asset)}}"#) == bad)
    #expect(try reason("a", #"{"other":{"value":\#(asset)}}"#) == bad)
    let receipt = try #require(try JSONValue(parsing: Array(asset.utf8))["receipt"]?.string)
    let forged = asset.replacing(receipt, with: damaged(receipt))
    #expect(try reason("a", #"{"cover":{"value":\#(forged)}}"#) == bad)
    let bare = #"{"fileChecksum":"A5BYxvLAy0ksUzsKTRTvd8wPeKvMztUofYShoghBnoE=","size":3}"#
    #expect(try reason("a", #"{"cover":{"type":"ASSETID","value":\#(bare)}}"#) == bad)
    #expect(try peer.changes().names.isEmpty)
    peer.clock.advance(milliseconds: 3_600_001)
    #expect(try reason("a", #"{"cover":{"value":\#(asset)}}"#) == bad)
  }

  @Test("W33: expired and forged addresses are refused", arguments: Transport.allCases)
  func addresses(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let (asset, _, uploadURL) = try upload([1, 2, 3], to: "a", peer)
    let url = try #require(address(of: try peer.save("a", #"{"cover":{"value":\#(asset)}}"#)))
    #expect(try download(url, peer).status == 200)
    #expect(try download(damaged(url), peer).code == "ACCESS_DENIED")
    #expect(try download(url.replacing("/asset/", with: "/asset/A"), peer).status == 403)
    // The address of an upload is no address of a download, and the other way round.
    #expect(try download(uploadURL.replacing("/asset-upload/", with: "/asset/"), peer).status == 403)
    #expect(try peer.call("POST", try path(url.replacing("/asset/", with: "/asset-upload/")), query: "").status == 403)
    try peer.restart()
    #expect(try peer.call("POST", try path(uploadURL), query: "", [:], [4]).status == 200)
    #expect(try download(url, peer).status == 200)
    peer.clock.advance(milliseconds: 900_001)
    #expect(try peer.call("POST", try path(uploadURL), query: "", [:], [4]).code == "ACCESS_DENIED")
    #expect(try download(url, peer).status == 200)
    peer.clock.advance(milliseconds: 3_600_000)
    #expect(try download(url, peer).code == "ACCESS_DENIED")
  }

  @Test(
    "W34: an asset is unreachable after its last reference goes; rereference keeps it", arguments: Transport.allCases)
  func references(_ transport: Transport) throws {
    let peer = try Peer(transport)
    let (asset, _, _) = try upload([1, 2, 3], to: "a", peer)
    let url = try #require(address(of: try peer.save("a", #"{"cover":{"value":\#(asset)}}"#)))
    let again = try peer.post(
      "assets/rereference",
      #"{"zoneID":{"zoneName":"Notes"},"assets":[{"recordName":"a","fieldName":"cover"},{"recordName":"a","fieldName":"x"}]}"#
    )
    let entries = again.list("assets")
    #expect(entries.count == 2)
    #expect(entries.last?.code == "NOT_FOUND")
    let copy = String(decoding: try #require(entries.first).encoded, as: UTF8.self)
    #expect(try peer.save("b", #"{"photo":{"value":\#(copy)}}"#).code == nil)
    try peer.delete("a")
    #expect(try download(url, peer).body == [1, 2, 3])
    try peer.save("b", #"{"photo":{"value":null}}"#)
    #expect(try download(url, peer).code == "NOT_FOUND")
    // Kept as long as a receipt could bring it back, and then no longer.
    try peer.core.removeUnusedAssets()
    #expect(try peer.assetCount() == 1)
    peer.clock.advance(milliseconds: 3_600_001)
    try peer.core.removeUnusedAssets()
    #expect(try peer.assetCount() == 0)
  }

  @Test("section 12: an asset over the limit is refused, and so is a token for no field", arguments: Transport.allCases)
  func limits(_ transport: Transport) throws {
    var settings = ServerSettings()
    settings.bytesPerAsset = 100_000
    let peer = try Peer(transport, settings: settings)
    let reply = try upload(picture, to: "a", peer).reply
    #expect(reply.status == 400)
    #expect(reply.code == "BAD_REQUEST")
    #expect(try upload(Array(picture.prefix(100_000)), to: "a", peer).reply.status == 200)
    #expect(try peer.post("assets/upload", #"{"tokens":[{"recordName":"a"}]}"#).code == "BAD_REQUEST")
    let unnamed = try peer.post("assets/upload", #"{"tokens":[{"recordType":"Note","fieldName":"f"}]}"#)
    #expect(unnamed.list("tokens").first?["recordName"]?.string?.count == 36)
  }

  @Test("uploads of one content share their bytes, and a deleted zone frees them")
  func sharing() throws {
    let peer = try Peer(.inProcess)
    for name in ["a", "b"] {
      let (asset, _, _) = try upload(picture, to: name, peer)
      #expect(try peer.save(name, #"{"cover":{"value":\#(asset)}}"#).code == nil)
    }
    #expect(try peer.assetCount() == 1)
    peer.clock.advance(milliseconds: 4_000_000)
    try peer.core.removeUnusedAssets()
    #expect(try peer.assetCount() == 1)
    try peer.post(
      "zones/modify", #"{"operations":[{"operationType":"delete","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
    try peer.core.removeUnusedAssets()
    #expect(try peer.assetCount() == 0)
  }
}

/// ``FileAssetStore``, on a real folder.
@Suite struct FileAssetStoreTests {
  private func folder() throws -> String {
    let path = NSTemporaryDirectory() + "/assets-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  private func add(_ bytes: [UInt8], to store: FileAssetStore) throws -> AssetSummary {
    let writer = try store.makeWriter()
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      try bytes[start..<min(start + 1000, bytes.count)].withUnsafeBytes { try writer.append($0) }
    }
    let summary = try writer.finish()
    try writer.publish(nil)
    return summary
  }

  @Test func bytesOutliveTheObjectAndUnpublishedOnesDoNot() throws {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let bytes = [UInt8](repeating: 7, count: 12_345)
    let summary = try add(bytes, to: try FileAssetStore(folder: path + "/assets"))
    #expect(summary.size == 12_345)
    let store = try FileAssetStore(folder: path + "/assets")
    let abandoned = try store.makeWriter()
    _ = try abandoned.finish()
    guard case .file(let descriptor, let size)? = try store.open(summary.digest) else {
      Issue.record("the bytes are gone")
      return
    }
    close(descriptor)
    #expect(size == 12_345)
    #expect(try store.digests(in: Int(summary.digest[0])) == [summary.digest])
    try store.remove(summary.digest, nil)
    try store.remove(summary.digest, nil)
    #expect(try store.open(summary.digest) == nil)
  }

  @Test("a crash leaves files that the next start removes, and none that is wanted")
  func leftovers() throws {
    let path = try folder()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try FileAssetStore(folder: path)
    let orphan = try add([1], to: store)
    let half = path + "/incoming/99"
    #expect(FileManager.default.createFile(atPath: half, contents: Data([1])))
    let storage = try SQLiteStorage.inMemory()
    let wanted = try add([2], to: store)
    let saved = Awaited<Bool>()
    storage.submit { writer in
      try writer.keepAsset(wanted, until: .max)
      return { saved.set(true) }
    } failed: { _ in
      saved.set(false)
    }
    #expect(saved.wait())
    let again = try FileAssetStore(folder: path)
    _ = try CloudServer(storage: storage, assets: again)
    #expect(try again.open(orphan.digest) == nil)
    guard case .file(let descriptor, _)? = try again.open(wanted.digest) else {
      Issue.record("the wanted bytes are gone")
      return
    }
    close(descriptor)
    #expect(!FileManager.default.fileExists(atPath: half))
  }
}

extension AssetBytes: Equatable {
  public static func == (a: AssetBytes, b: AssetBytes) -> Bool {
    if case .memory(let a) = a, case .memory(let b) = b { a == b } else { false }
  }
}
