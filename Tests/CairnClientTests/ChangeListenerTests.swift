import CairnEngine
import CairnRecords
import CairnServer
import CairnServerCore
import Foundation
import ProcessSupport
import Synchronization
import Testing

@testable import CairnClient

/// Long polls of the client, against the real server (web-services section 11).
@Suite("Change listener")
struct ChangeListenerTests {
  /// A server with a user, and clients of that user.
  private final class World {
    let server: RunningServer
    private let token: String
    let zone = ZoneID(name: "Z")

    init(_ settings: ServerSettings = ServerSettings()) throws {
      let storage = try SQLiteStorage.inMemory()
      token = try UserAdministration(storage: storage).add("anna").token
      server = try RunningServer.start(storage: storage, listen: ListenAddress(port: 0), settings: settings)
    }

    private var isStopped = false

    func stop() {
      if !isStopped { server.stop() }
      isStopped = true
    }

    deinit { stop() }

    func client(_ name: String) throws -> WebServicesDatabase {
      var options = ServiceOptions(server: try ServerURL(parsing: server.url), token: token)
      options.clientID = name
      return WebServicesDatabase(options)
    }

    func save(_ name: String, by client: WebServicesDatabase) throws {
      let record = Record(id: RecordID(name: name, zone: zone), type: "T")
      _ = try client.modify(in: zone, [RecordOperation(.forceReplace, record)], atomic: false)
    }
  }

  /// Runs a wait on a thread of its own; `result` blocks until it has ended.
  private final class Waiting: Sendable {
    private let outcome = Mutex<Result<Bool, CloudError>?>(nil)
    private let done = DispatchSemaphore(value: 0)

    init(_ listener: ChangeListener, _ address: ChangeListener.Address) {
      Thread.detachNewThread { [self] in
        let result: Result<Bool, CloudError>
        do throws(CloudError) { result = .success(try listener.wait(at: address)) } catch { result = .failure(error) }
        outcome.withLock { $0 = result }
        done.signal()
      }
    }

    func result() throws -> Bool {
      try #require(done.wait(timeout: .now() + .seconds(Patience.seconds)) == .success, "the wait does not end")
      return try #require(outcome.withLock { $0 }).get()
    }
  }

  @Test("W35: another client's change ends a wait, the own does not, and what came between two waits is told")
  func wakes() throws {
    let world = try World()
    let (mine, other) = (try world.client("mine"), try world.client("other"))
    #expect(ChangeListener(besides: mine) == nil)
    _ = try mine.createZones([world.zone])
    _ = try other.currentUser()
    let listener = try #require(ChangeListener(besides: mine))
    let address = try #require(try listener.connect())
    let hub = world.server.core.notifications
    let waiting = Waiting(listener, address)
    try #require(eventually { hub.waiting == 1 })
    try world.save("a", by: mine)
    #expect(hub.waiting == 1)
    try world.save("b", by: other)
    #expect(try waiting.result())
    try world.save("c", by: other)
    #expect(try listener.wait(at: address))
    // The subscription is there already: a second listener shares it.
    #expect(try ChangeListener(besides: other)?.connect() != nil)
    #expect(try world.server.core.user(named: "anna") != nil)
  }

  @Test("W35: an idle wait ends without news; a cancel ends a wait at once; a stopped server ends it with an error")
  func ends() throws {
    var settings = ServerSettings()
    settings.pollHold = 30
    let idle = try World(settings)
    let quiet = try idle.client("a")
    _ = try quiet.currentUser()
    let first = try #require(ChangeListener(besides: quiet))
    #expect(try first.wait(at: try #require(try first.connect())) == false)

    let world = try World()
    let client = try world.client("a")
    _ = try client.currentUser()
    let hub = world.server.core.notifications
    let cancelled = try #require(ChangeListener(besides: client))
    let waiting = Waiting(cancelled, try #require(try cancelled.connect()))
    try #require(eventually { hub.waiting == 1 })
    let start = ContinuousClock.now
    cancelled.cancel()
    #expect((#expect(throws: CloudError.self) { try waiting.result() })?.code == .cancelled)
    // Not when the poll ends by itself.
    #expect(ContinuousClock.now - start < .milliseconds(ServerSettings().pollHold / 2))

    let left = try #require(ChangeListener(besides: client))
    let stopped = Waiting(left, try #require(try left.connect()))
    try #require(eventually { hub.waiting == 2 })
    let stop = ContinuousClock.now
    world.stop()
    #expect((#expect(throws: CloudError.self) { try stopped.result() })?.code == .tryAgainLater)
    #expect(ContinuousClock.now - stop < .milliseconds(ServerSettings().pollHold / 2))
  }

  @Test("an address that the server knows no more is notFound and does not show")
  func unknownAddress() throws {
    var settings = ServerSettings()
    settings.couriersPerUser = 1
    let world = try World(settings)
    let client = try world.client("a")
    _ = try client.currentUser()
    let listener = try #require(ChangeListener(besides: client))
    let address = try #require(try listener.connect())
    _ = try listener.connect()
    let error = #expect(throws: CloudError.self) { try listener.wait(at: address) }
    #expect(error?.code == .notFound)
    #expect("\(address)".contains("courier") == false)
    world.stop()
  }

  @Test("a server of Cairn that has no notifications is told apart from one that fails")
  func notOffered() throws {
    let missing = #"{"serverErrorCode":"NOT_FOUND","reason":"There is nothing at /x"}"#
    let responder = try TinyResponder([
      .answer(200, headers: ["X-Cairn-Features: page=200"], body: #"{"userRecordName":"_a"}"#),
      .answer(404, body: missing), .answer(500, body: #"{"serverErrorCode":"INTERNAL_ERROR"}"#),
    ])
    defer { responder.stop() }
    let url = try ServerURL(parsing: "http://127.0.0.1:\(responder.port)")
    let client = WebServicesDatabase(ServiceOptions(server: url, token: "t"))
    _ = try client.currentUser()
    let listener = try #require(ChangeListener(besides: client))
    #expect(try listener.connect() == nil)
    #expect((#expect(throws: CloudError.self) { try listener.connect() })?.code == .internalError)
  }
}
