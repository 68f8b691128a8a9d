import CairnPostgres
import CairnTesting
import CairnWire
import Foundation
import StoreSupport
import Testing

@testable import CairnServer
@testable import CairnServerCore

/// How requests reach the server: handed to it in this process, or over a socket; and on which store, where it is not
/// one in memory.
enum Transport: CaseIterable, Sendable {
  case inProcess, loopback, postgres

  var store: StoreKind { self == .postgres ? .postgres : .memory }
}

/// A server with one user and one zone, spoken to in JSON. The same test body runs over every ``Transport``.
final class Peer {
  struct Reply {
    var status: Int
    var headers: [String: String]
    var body: [UInt8]
    var json: JSONValue

    subscript(key: String) -> JSONValue? { json[key] }
    func list(_ key: String) -> [JSONValue] { if case .array(let list)? = json[key] { list } else { [] } }
    var code: String? { json["serverErrorCode"]?.string }
    var reason: String? { json["reason"]?.string }
  }

  static let token = "a+b/c=="
  static let path = "/database/1/iCloud.test/production/private/"
  let clock = ManualClock()
  private let store: TestStore
  private(set) var storage: any Storage
  private(set) var assets: any AssetStore
  let transport: Transport
  private(set) var core: CloudServer
  private(set) var running: RunningServer?
  private var handler: RequestHandler?
  private let settings: ServerSettings

  init(_ transport: Transport, settings: ServerSettings = ServerSettings()) throws {
    self.transport = transport
    self.settings = settings
    store = try TestStore(transport.store)
    storage = try store.open()
    assets = Peer.assets(storage)
    let users = UserDirectory(storage: storage, clock: clock)
    _ = try users.add("anna")
    try users.addToken(hash: WebAuthToken.hash(Peer.token), for: "anna")
    core = try CloudServer(storage: storage, assets: assets, clock: clock, settings: settings)
    try start()
    try post("zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Notes"}}}]}"#)
  }

  deinit {
    running?.stop()
    storage.close()
  }

  private static func assets(_ storage: any Storage) -> any AssetStore {
    (storage as? PostgresStorage).map(PostgresAssetStore.init) ?? MemoryAssetStore()
  }

  /// How many assets have bytes.
  func assetCount() throws -> Int {
    if let assets = assets as? MemoryAssetStore { return assets.count }
    let count = try PostgresCluster.shared().execute(
      "SELECT count(DISTINCT upload) FROM cairn.asset_chunks", in: store.url)
    return Int(count[0]) ?? -1
  }

  private func start() throws {
    switch transport {
    case .inProcess: handler = RequestHandler(server: core, bodyBytes: 1 << 20)
    case .loopback, .postgres:
      let server = try RunningServer.start(
        storage: storage, assets: assets, listen: ListenAddress(port: 0), clock: clock, settings: settings)
      running = server
      core = server.core
    }
  }

  /// Ends the server and starts another on the same store.
  func restart() throws {
    running?.stop()
    if transport == .postgres {
      storage = try store.open()
      assets = Peer.assets(storage)
    }
    core = try CloudServer(storage: storage, assets: assets, clock: clock, settings: settings)
    try start()
  }

  var port: UInt16 { running.flatMap { UInt16($0.url.split(separator: ":").last ?? "") } ?? 0 }

  @discardableResult
  func post(
    _ operation: String, _ body: String = "{}", query: String = "", headers: [String: String] = [:]
  ) throws -> Reply {
    try call("POST", Peer.path + operation, query: "ckWebAuthToken=a%2Bb%2Fc%3D%3D&" + query, headers, Array(body.utf8))
  }

  func get(_ operation: String, query: String = "") throws -> Reply {
    try call("GET", Peer.path + operation, query: "ckWebAuthToken=a%2Bb%2Fc%3D%3D&" + query, [:], [])
  }

  /// Any request. `query` is percent-encoded.
  func call(
    _ method: String, _ path: String, query: String, _ headers: [String: String] = [:], _ body: [UInt8] = []
  ) throws -> Reply {
    switch transport {
    case .inProcess: try inProcess(method, path, query, headers, body)
    case .loopback, .postgres: try loopback(method, path, query, headers, body)
    }
  }

  private func inProcess(
    _ method: String, _ path: String, _ query: String, _ headers: [String: String], _ body: [UInt8]
  ) throws -> Reply {
    let arguments = query.split(separator: "&").map { part in
      let sides = part.split(separator: "=", maxSplits: 1)
      let value = sides.count > 1 ? String(sides[1]).replacing("+", with: " ").removingPercentEncoding ?? "" : ""
      return (name: String(sides[0]), value: value)
    }
    let lower = Dictionary(headers.map { ($0.lowercased(), $1) }) { first, _ in first }
    let request = HTTPRequest(
      method: method, path: path, query: arguments, headers: lower, body: body,
      target: query.isEmpty ? path : "\(path)?\(query)")
    let answer = Awaited<HTTPResponse>()
    try #require(handler).handle(request) { answer.set($0()) }
    let response = answer.wait()
    let names = Dictionary(response.headers.map { ($0.lowercased(), $1) }) { first, _ in first }
    return try reply(response.status, names, response.bytes)
  }

  private func loopback(
    _ method: String, _ path: String, _ query: String, _ headers: [String: String], _ body: [UInt8]
  ) throws -> Reply {
    let connection = try RawConnection(port: port)
    let target = query.isEmpty ? path : "\(path)?\(query)"
    var head = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if method != "GET" { head += "Content-Length: \(body.count)\r\n" }
    try connection.send(Array((head + "\r\n").utf8) + body)
    let answer = try connection.answer()
    return try reply(answer.status, answer.headers, answer.body)
  }

  private func reply(_ status: Int, _ headers: [String: String], _ body: [UInt8]) throws -> Reply {
    let plain = headers["content-encoding"] == "gzip" ? try Gzip.decompress(body, limit: 1 << 24) : body
    let isJSON = !body.isEmpty && headers["content-type"]?.hasPrefix("application/json") == true
    return Reply(
      status: status, headers: headers, body: body, json: isJSON ? try JSONValue(parsing: plain) : .null)
  }

  // MARK: Words

  /// Saves one record of type Note with the given fields, as JSON.
  @discardableResult
  func save(_ name: String, _ fields: String = "{}", kind: String = "forceReplace") throws -> JSONValue {
    try #require(
      try modify(
        #"{"operationType":"\#(kind)","record":{"recordName":"\#(name)","recordType":"Note","fields":\#(fields)}}"#
      ).first)
  }

  func delete(_ name: String) throws {
    try modify(#"{"operationType":"forceDelete","record":{"recordName":"\#(name)"}}"#)
  }

  @discardableResult
  func modify(_ operations: String..., query: String = "", atomic: Bool = false) throws -> [JSONValue] {
    try post(
      "records/modify",
      #"{"zoneID":{"zoneName":"Notes"},"atomic":\#(atomic),"operations":[\#(operations.joined(separator: ","))]}"#,
      query: query
    ).list("records")
  }

  /// One entry of changes/zone.
  func changes(_ token: String? = nil, limit: Int? = nil, query: String = "", more: String = "") throws -> JSONValue {
    var body = #"{"zones":[{"zoneID":{"zoneName":"Notes"}"#
    if let token { body += #","syncToken":"\#(token)""# }
    if let limit { body += #","resultsLimit":\#(limit)"# }
    return try #require(try post("changes/zone", body + more + "}]}", query: query).list("zones").first)
  }
}

extension JSONValue {
  func list(_ key: String) -> [JSONValue] { if case .array(let list)? = self[key] { list } else { [] } }
  var names: [String] { list("records").compactMap { $0["recordName"]?.string } }
  var code: String? { self["serverErrorCode"]?.string }
  var isDeleted: Bool { self["deleted"] == .bool(true) }
  /// The value and the type of a field.
  func field(_ name: String) -> (JSONValue?, String?) {
    (self["fields"]?[name]?["value"], self["fields"]?[name]?["type"]?.string)
  }
  var keys: Set<String> { if case .object(let members) = self { Set(members.map(\.key)) } else { [] } }
}
