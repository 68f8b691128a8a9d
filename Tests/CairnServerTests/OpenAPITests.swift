import CairnServerCore
import CairnWire
import Foundation
import Testing

@testable import CairnServer

/// docs/openapi.json says what the server's own table of endpoints says.
@Suite struct OpenAPITests {
  private static let verbs: Set<String> = ["get", "head", "post", "put", "delete", "patch", "options", "trace"]
  private static let prefix = "/database/1/{container}/{environment}/{database}/"

  private let document: JSONValue
  private let paths: [JSONMember]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    document = try JSONValue(parsing: Array(try Data(contentsOf: root.appendingPathComponent("docs/openapi.json"))))
    guard case .object(let members)? = document["paths"] else {
      paths = []
      return
    }
    paths = members
  }

  @Test("web-services section 2: the document has the endpoints of the server, their verbs, databases and credentials")
  func endpoints() throws {
    var described: Set<String> = []
    for path in paths where path.key.hasPrefix(Self.prefix) {
      let name = String(path.key.dropFirst(Self.prefix.count))
      described.insert(name)
      let endpoint = try #require(Endpoint.all[name], "the server has no \(name)")
      #expect(path.value.keys.intersection(Self.verbs) == (endpoint.allowsGet ? ["get", "post"] : ["post"]), "\(name)")
      let parameter = path.value.list("parameters").first { $0["name"]?.string == "database" }
      let databases = parameter?["schema"]?.list("enum").compactMap { $0.string.flatMap { DatabaseKind(rawValue: $0) } }
      #expect(Set(databases ?? []) == endpoint.databases, "\(name)")
      let alone = path.value["post"]?.list("security").contains { $0.keys == ["apiToken"] }
      #expect(alone == endpoint.isPublicRead, "\(name)")
    }
    #expect(described == Set(Endpoint.all.keys))
  }

  @Test("every path and verb of the document is served: none is an unknown path")
  func served() throws {
    let peer = try Peer(.inProcess)
    for path in paths {
      var concrete = path.key
      for (name, value) in [
        ("container", "iCloud.test"), ("environment", "production"), ("database", "private"), ("ticket", "x"),
        ("address", "x"),
      ] { concrete = concrete.replacingOccurrences(of: "{\(name)}", with: value) }
      for verb in path.value.keys.intersection(Self.verbs) {
        let reply = try peer.call(verb.uppercased(), concrete, query: AccessTests.webAuth)
        #expect(reply.reason != "There is nothing at this path", "\(verb) \(concrete)")
        #expect(reply.status < 500)
      }
    }
  }

  @Test("web-services section 4: the document's error codes are the 14, and every reference leads somewhere")
  func references() throws {
    let codes = document["components"]?["schemas"]?["ErrorCode"]?.list("enum").compactMap(\.string) ?? []
    #expect(codes.count == 14 && codes == codes.sorted())
    func follow(_ value: JSONValue) {
      switch value {
      case .array(let elements): elements.forEach(follow)
      case .object(let members):
        for member in members {
          if member.key == "$ref", let target = member.value.string {
            let found = target.split(separator: "/").dropFirst().reduce(Optional(document)) { $0?[String($1)] }
            #expect(found != nil, "\(target)")
          }
          follow(member.value)
        }
      default: break
      }
    }
    follow(document)
  }
}
