import CairnPostgres
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport
import StoreSupport
import Synchronization
import Testing

@testable import CairnServerCore

/// Runs `body` on threads of its own and waits for all.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let errors = Mutex<[any Error]>([])
  let group = DispatchGroup()
  for number in 0..<count {
    group.enter()
    let thread = Thread {
      do { try body(number) } catch { errors.withLock { $0.append(error) } }
      group.leave()
    }
    thread.start()
  }
  group.wait()
  if let error = errors.withLock({ $0.first }) { throw error }
}

/// Several servers on one store in PostgreSQL.
@Suite struct SharedStoreTests {
  /// Servers, as processes behind a load balancer are, and one user with a zone.
  private final class Servers: Sendable {
    let store: TestStore
    let storages: [PostgresStorage]
    let all: [CloudServer]
    let anna: Caller
    let scope = DatabaseScope(container: "iCloud.test")
    let zone = ZoneID(name: "Notes")

    init(
      _ count: Int = 2, store: TestStore? = nil, writers: Int = 4, polling: Bool = false, assetsInStore: Bool = false,
      clock: any ServerClock = SystemServerClock()
    ) throws {
      self.store = try store ?? TestStore(.postgres)
      let url = try PostgresURL(self.store.url)
      storages = try (0..<count).map { _ in try PostgresStorage(url, writers: writers, polling: polling) }
      all = try storages.map {
        try CloudServer(storage: $0, assets: assetsInStore ? PostgresAssetStore($0) : MemoryAssetStore(), clock: clock)
      }
      anna = try all[0].user(named: "anna") ?? UserDirectory(storage: storages[0]).add("anna")
      _ = try all[0].modifyZones(anna, scope, [.create(zone)])
    }

    deinit { for server in all { server.close() } }

    func note(_ name: String, _ fields: Fields = [:], tag: ChangeTag? = nil) -> Record {
      Record(id: RecordID(name: name, zone: zone), type: "Note", changeTag: tag, fields: fields)
    }

    func run(
      _ kind: RecordOperation.Kind, _ records: [Record], at server: Int
    ) throws -> [OperationOutcome] {
      let operations = records.map { IncomingOperation(RecordOperation(kind, $0)) }
      return try all[server].modify(anna, scope, Modification(operations: operations)).outcomes
    }

    func page(_ token: ChangeToken?, at server: Int) throws -> (names: [String], token: ChangeToken) {
      let page = try all[server].changes(anna, scope, [ZoneFeedQuery(zone: zone, token: token)])[0].get()
      return (
        page.entries.compactMap { if case .record(let record) = $0 { record.id.name } else { nil } }, page.token
      )
    }
  }

  @Test("W24: writers at three servers while a reader pages at all of them: the union of the pages is the final state")
  func feed() throws {
    let servers = try Servers(3)
    let isDone = Atomic<Bool>(false)
    let found = Mutex<[String]>([])
    try onThreads(7) { number in
      if number == 6 {
        var token: ChangeToken?
        var turn = 0
        while true {
          let wasDone = isDone.load(ordering: .sequentiallyConsistent)
          let page = try servers.page(token, at: turn % 3)
          turn += 1
          token = page.token
          found.withLock { $0 += page.names }
          if wasDone, page.names.isEmpty { return }
        }
      }
      defer { if number == 0 { isDone.store(true, ordering: .sequentiallyConsistent) } }
      for i in 0..<30 {
        let outcomes = try servers.run(.create, [servers.note("w\(number)-\(i)")], at: number % 3)
        #expect(outcomes[0].error == nil)
      }
      // The first one ends last, so that the reader knows when all have ended.
      if number == 0 {
        #expect(eventually { found.withLock { $0.count } == 180 })
      }
    }
    let names = found.withLock { $0 }
    #expect(names.count == 180 && Set(names).count == 180)
  }

  @Test("section 8: a server that starts beside others leaves their tokens and tags good, and knows them")
  func startBeside() throws {
    let first = try Servers(1)
    let a = try first.run(.create, [first.note("a", ["n": .int64(1)])], at: 0)[0].saved()
    let token = try first.page(nil, at: 0).token
    let second = try Servers(1, store: first.store)
    #expect(try second.page(token, at: 0).names.isEmpty)
    let b = try second.run(.update, [second.note("a", ["n": .int64(2)], tag: a.changeTag)], at: 0)[0].saved()
    let page = try first.page(token, at: 0)
    #expect(page.names == ["a"])
    let c = try first.run(.update, [first.note("a", ["n": .int64(3)], tag: b.changeTag)], at: 0)[0].saved()
    #expect(try second.page(page.token, at: 0).names == ["a"])
    // A tag that another server has given is a conflict there too, once it is old.
    #expect(try second.run(.update, [second.note("a", tag: b.changeTag)], at: 0)[0].error?.code == .conflict)
    #expect(try second.run(.update, [second.note("a", tag: c.changeTag)], at: 0)[0].error == nil)
  }

  @Test("section 7: what one server learns of types holds at the others at once; of two that learn, one is right")
  func schema() throws {
    let servers = try Servers(2)
    #expect(try servers.run(.create, [servers.note("a", ["n": .int64(1)])], at: 0)[0].error == nil)
    #expect(try servers.run(.create, [servers.note("b", ["n": .string("x")])], at: 1)[0].error?.code == .badRequest)
    #expect(try servers.run(.create, [servers.note("c", ["n": .int64(2)])], at: 1)[0].error == nil)
    for round in 0..<10 {
      let failures = Atomic<Int>(0)
      // Different users, so that no lock of a database keeps them apart.
      let others = try ["u\(round)", "v\(round)"].map { try UserDirectory(storage: servers.storages[0]).add($0) }
      for i in 0..<2 { _ = try servers.all[i].modifyZones(others[i], servers.scope, [.create(servers.zone)]) }
      try onThreads(2) { number in
        let value: FieldValue = number == 0 ? .int64(1) : .string("x")
        let operation = IncomingOperation(
          RecordOperation(.create, servers.note("r", ["f\(round)": value])))
        let outcome = try servers.all[number].modify(
          others[number], servers.scope, Modification(operations: [operation]))
        if outcome.outcomes[0].error?.code == .badRequest { failures.wrappingAdd(1, ordering: .relaxed) }
      }
      let count = failures.load(ordering: .relaxed)
      #expect(count == 1)
    }
  }

  @Test("W6: a single-use token that is used at two servers at once works at one of them")
  func singleUse() throws {
    let servers = try Servers(2)
    for round in 0..<20 {
      let hash = [UInt8](repeating: UInt8(round), count: 32)
      try UserDirectory(storage: servers.storages[0]).addToken(hash: hash, for: "anna")
      let uses = Atomic<Int>(0)
      try onThreads(2) { number in
        let next = [UInt8](repeating: UInt8(100 + number), count: 31) + [UInt8(round)]
        if try servers.all[number].replaceToken(hash: hash, with: next) { uses.wrappingAdd(1, ordering: .relaxed) }
      }
      let count = uses.load(ordering: .relaxed)
      #expect(count == 1)
    }
  }

  @Test("a user who is removed at one server is gone at the others, with what is on its way")
  func removedUser() throws {
    let servers = try Servers(2)
    #expect(try servers.run(.create, [servers.note("a")], at: 0)[0].error == nil)
    try UserDirectory(storage: servers.storages[1]).remove("anna")
    #expect(failure { _ = try servers.run(.create, [servers.note("b")], at: 0) }?.code == .tryAgainLater)
    #expect(throws: CloudError.self) { try servers.page(nil, at: 0) }
    let added = failure {
      _ = try servers.all[0].modifyZones(servers.anna, servers.scope, [.create(ZoneID(name: "New"))])
    }
    #expect(added?.code == .tryAgainLater)
    #expect(try servers.all[1].user(named: "anna") == nil)
    let database = servers.store.url
    #expect(
      eventually {
        _ = try? CloudServer(storage: servers.storages[0])
        let left = try? PostgresCluster.shared().execute(
          "SELECT (SELECT count(*) FROM cairn.records) + (SELECT count(*) FROM cairn.zones)", in: database)
        return left == ["0"]
      })
    #expect(try UserDirectory(storage: servers.storages[0]).add("anna").key > servers.anna.key)
  }

  @Test(
    "section 11: a change at one server ends a poll at another, at an address of a third", arguments: [false, true])
  func notifications(_ polling: Bool) throws {
    let servers = try Servers(3, polling: polling)
    let subscription = Subscription(id: "all", kind: .database)
    _ = try servers.all[0].modifySubscriptions(servers.anna, servers.scope, [.create(subscription)])[0].get()
    let courier = try servers.all[2].addCourier(servers.anna, servers.scope)
    let heard = Mutex<[String]>([])
    #expect(
      servers.all[1].poll(courier) { answer in
        if case .notification(_, let news) = answer { heard.withLock { $0.append(news.zone.name) } }
      } != nil)
    // The one that stores has to know the address too, which the third tells it.
    #expect(
      try eventually {
        _ = try servers.run(.forceReplace, [servers.note("a")], at: 0)
        return heard.withLock { $0 } == ["Notes"]
      })
    let unknown = Atomic<Bool>(false)
    _ = servers.all[1].poll("nobody") { if case .unknown = $0 { unknown.store(true, ordering: .relaxed) } }
    let isUnknown = unknown.load(ordering: .relaxed)
    #expect(isUnknown)
  }

  @Test("section 11: what a server stores while another one is not listening ends the polls there afterwards")
  func gap() throws {
    let cluster = try PostgresCluster.shared()
    let first = try Servers(1, writers: 1)
    let (url, store) = (first.store.url, first.store)
    func listening() throws -> Set<String> {
      try Set(
        cluster.execute(
          "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'", in: url))
    }
    #expect(try eventually { try listening().count == 1 })
    let own = try listening()
    let second = try Servers(1, store: store, writers: 1)
    #expect(try eventually { try listening().count == 2 })
    let others = try listening().subtracting(own)
    let subscription = Subscription(id: "all", kind: .database)
    _ = try first.all[0].modifySubscriptions(first.anna, first.scope, [.create(subscription)])[0].get()
    let courier = try second.all[0].addCourier(second.anna, second.scope)
    let ear = Ear(second.all[0], courier)
    ear.listen()
    // The first server knows the address, and has all connections that it needs.
    #expect(eventually { first.all[0].notifications.knows(courier) })
    #expect(try first.run(.forceReplace, [first.note("warm")], at: 0)[0].error == nil)
    #expect(eventually { ear.heard > 0 })
    // The second server is kept away from the database while the first one stores something.
    let name = String(url.split(separator: "?")[0].split(separator: "/").last ?? "")
    try cluster.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
    try cluster.execute("SELECT pg_terminate_backend(\(others.first ?? "0"))")
    #expect(
      try eventually { try cluster.execute("SELECT 1 FROM pg_stat_activity WHERE pid = \(others.first ?? "0")") == [] })
    let before = ear.heard
    #expect(try first.run(.forceReplace, [first.note("a")], at: 0)[0].error == nil)
    #expect(ear.heard == before)
    try cluster.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
    #expect(eventually { ear.heard > before })
  }

  /// Polls an address again whenever it was told something.
  private final class Ear: Sendable {
    private let server: CloudServer
    private let courier: String
    private let count = Atomic<Int>(0)
    var heard: Int { count.load(ordering: .sequentiallyConsistent) }

    init(_ server: CloudServer, _ courier: String) { (self.server, self.courier) = (server, courier) }

    func listen() {
      _ = server.poll(courier) { [self] answer in
        guard case .notification = answer else { return }
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        listen()
      }
    }
  }

  @Test("section 11: an asset that is uploaded at one server is downloaded at another, and goes with its record")
  func assets() throws {
    let clock = ManualClock()
    let servers = try Servers(2, assetsInStore: true, clock: clock)
    for size in [0, 1, 300_000, 2_000_000] {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
      let field = AssetField(recordName: "a\(size)", recordType: "Note", fieldName: "f")
      let targets = try servers.all[0].uploadTargets(servers.anna, servers.scope, [field])
      let asset = try servers.all[1].upload(bytes, to: targets[0].path)
      let again = try servers.all[0].upload(bytes, to: targets[0].path)
      #expect(asset.fileChecksum == again.fileChecksum)
      let saved = try servers.run(.create, [servers.note("a\(size)", ["f": .asset(asset)])], at: 0)[0].saved()
      guard case .asset(let stored)? = saved.fields["f"], let path = stored.downloadURL else {
        Issue.record("no address")
        return
      }
      let token = String(path.dropFirst(CloudServer.downloadPath.utf8.count))
      var found: [UInt8] = []
      try servers.all[1].download(token).forEachPiece { found += $0 }
      #expect(found == bytes)
      #expect(try servers.run(.forceDelete, [servers.note("a\(size)")], at: 1)[0].error == nil)
      clock.advance(milliseconds: servers.all[0].settings.receiptLife + 1)
      try servers.all[0].removeUnusedAssets()
    }
    let left = try PostgresCluster.shared().execute(
      "SELECT (SELECT count(*) FROM cairn.assets) + (SELECT count(*) FROM cairn.asset_chunks)", in: servers.store.url)
    #expect(left == ["0"])
  }

  @Test("connections that break under load lose nothing that was answered, and store nothing twice")
  func brokenConnections() throws {
    let servers = try Servers(2)
    let stored = Mutex<Set<String>>([])
    let maybe = Mutex<Set<String>>([])
    let isDone = Atomic<Bool>(false)
    try onThreads(5) { number in
      if number == 4 {
        // In step with the answers: a slow machine loses no more of them than a fast one.
        var answered = 0
        while !isDone.load(ordering: .relaxed) {
          let isDue = eventually {
            isDone.load(ordering: .relaxed)
              || stored.withLock { $0.count } + maybe.withLock { $0.count } >= answered + 12
          }
          #expect(isDue)
          answered = stored.withLock { $0.count } + maybe.withLock { $0.count }
          try PostgresCluster.shared().execute(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            """, in: servers.store.url)
        }
        return
      }
      defer { if number == 0 { isDone.store(true, ordering: .relaxed) } }
      for i in 0..<40 {
        let name = "r\(number)-\(i)"
        do {
          let outcomes = try servers.run(.create, [servers.note(name), servers.note(name + "b")], at: number % 2)
          #expect(outcomes.allSatisfy { $0.error == nil }, "\(outcomes)")
          stored.withLock { _ = $0.insert(name) }
        } catch let error as CloudError {
          #expect(error.code == .tryAgainLater, "\(error)")
          maybe.withLock { _ = $0.insert(name) }
        }
      }
    }
    var names: [String] = []
    var token: ChangeToken?
    #expect(eventually { (try? servers.page(nil, at: 0)) != nil })
    while true {
      let page = try servers.page(token, at: 0)
      if page.names.isEmpty { break }
      names += page.names
      token = page.token
    }
    #expect(Set(names).count == names.count)
    for name in stored.withLock({ $0 }) { #expect(names.contains(name) && names.contains(name + "b"), "\(name)") }
    for name in maybe.withLock({ $0 }) { #expect(names.contains(name) == names.contains(name + "b"), "\(name)") }
    // Each break costs each of the four threads one answer at the most.
    #expect(stored.withLock { $0.count } > 100)
  }

  @Test("section 8: another run of PostgreSQL begins an epoch, a connection that merely broke does not")
  func failover() throws {
    let cluster = try PostgresCluster()
    let url = try cluster.makeDatabase()
    let storage = try PostgresStorage(PostgresURL(url), writers: 2)
    let server = try CloudServer(storage: storage)
    defer { server.close() }
    func epoch() throws -> [String] { try cluster.execute("SELECT epoch FROM cairn.store", in: url) }
    let users = UserDirectory(storage: storage)
    // An attempt whose answer was lost may have worked.
    func canAdd(_ name: String) -> Bool {
      eventually { (try? users.add(name)) != nil || (try? users.list())?.contains { $0.name == name } == true }
    }
    _ = try users.add("anna")
    let first = try epoch()
    try cluster.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname LIKE 't%'")
    #expect(canAdd("berta"))
    #expect(try epoch() == first)
    try cluster.kill()
    #expect(throws: CloudError.self) { _ = try server.user(named: "anna") }
    try cluster.start()
    #expect(canAdd("carla"))
    #expect(try epoch() != first)
    #expect(try users.list().map(\.name) == ["anna", "berta", "carla"])
  }

  @Test("a store of a newer format is refused, and the password is in no error")
  func refusals() throws {
    let store = try TestStore(.postgres)
    try PostgresStorage(PostgresURL(store.url)).close()
    try PostgresCluster.shared().execute("UPDATE cairn.store SET format = 99", in: store.url)
    #expect(throws: PostgresStartError.self) { try PostgresStorage(PostgresURL(store.url)) }
    let cluster = try PostgresCluster.shared()
    _ = try? cluster.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    for address in [
      cluster.url("postgres", user: "locked:secret1word"), "postgres://u:secret1word@127.0.0.1:1/x",
      "postgres://u:secret1word@[::1/x", "postgres://u@127.0.0.1:1/x?password=secret1word&sslmode=wrong",
    ] {
      do {
        _ = try PostgresStorage(PostgresURL(address))
        Issue.record("opened \(address)")
      } catch {
        #expect(!"\(error)".contains("secret1word"), "\(error)")
        #expect("\(error)".split(separator: "\n").count == 1, "\(error)")
      }
    }
  }
}
