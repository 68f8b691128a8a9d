import CairnEngine
import CairnRecords
import CairnServer
import CairnServerCore
import Testing

@testable import CairnClient

@Suite("Client and a real server that comes and goes")
struct ServerLossTests {
  @Test("a wrong token is refused, and does not show")
  func wrongToken() throws {
    let storage = try SQLiteStorage.inMemory()
    _ = try UserAdministration(storage: storage).add("anna")
    let server = try RunningServer.start(storage: storage, listen: ListenAddress(port: 0))
    defer { server.stop() }
    let options = ServiceOptions(server: try ServerURL(parsing: server.url), token: "wrong+token")
    let error = #expect(throws: CloudError.self) { try WebServicesDatabase(options).databaseChanges(since: nil) }
    #expect(error?.code == .authenticationFailed)
    #expect(error?.reason.contains("wrong") == false)
  }

  @Test("W42: gzip in both directions")
  func gzip() throws {
    let storage = try SQLiteStorage.inMemory()
    let token = try UserAdministration(storage: storage).add("anna").token
    let server = try RunningServer.start(storage: storage, listen: ListenAddress(port: 0))
    defer { server.stop() }
    let options = ServiceOptions(server: try ServerURL(parsing: server.url), token: token)
    let database = WebServicesDatabase(
      options, transport: CurlTransport(caFile: nil, acceptsGzip: true), compresses: true)
    let zone = ZoneID(name: "Z")
    #expect(try database.createZones([zone]) == [.success(zone)])
    let text = String(repeating: "stone ", count: 50_000)
    let record = Record(id: RecordID(name: "r", zone: zone), type: "T", fields: ["t": .string(text)])
    _ = try database.modify(in: zone, [RecordOperation(.create, record)], atomic: false)
    #expect(try database.zoneChanges(in: zone, since: nil).records.first?.fields["t"] == .string(text))
  }

  @Test("a stopped server is unavailable; back on its port, the same client goes on")
  func restart() throws {
    let storage = try SQLiteStorage.inMemory()
    let token = try UserAdministration(storage: storage).add("anna").token
    let first = try RunningServer.start(storage: storage, listen: ListenAddress(port: 0))
    let address = try ServerURL(parsing: first.url)
    let database = WebServicesDatabase(ServiceOptions(server: address, token: token))
    let user = try database.currentUser()
    #expect(user.hasPrefix("_"))
    first.stop()
    let error = #expect(throws: CloudError.self) { try database.databaseChanges(since: nil) }
    #expect(error?.code == .networkUnavailable, "\(String(describing: error))")

    let next = try SQLiteStorage.inMemory()
    let administration = UserAdministration(storage: next)
    _ = try administration.add("anna")
    let port = try #require(address.port.flatMap { UInt16(exactly: $0) })
    let second = try RunningServer.start(storage: next, listen: ListenAddress(port: port))
    defer { second.stop() }
    // Another store knows other tokens: what counts is that the client connects again.
    let refused = #expect(throws: CloudError.self) { try database.databaseChanges(since: nil) }
    #expect(refused?.code == .authenticationFailed)
  }
}
