import Cairn
import CairnEngine
import CairnRecords
import CairnSQLite
import CairnTables
import CairnTesting
import Foundation

/// One device of a scenario: a database file, programs that write to it, and an engine that syncs it with the world's
/// server core in memory.
final class Device {
  let name: String
  let path: String
  /// Where the world is: the world itself holds its devices.
  let place: SyncPlace
  private let folder: ScenarioFolder
  /// Between engine and server: faults, and a log of what was sent.
  private(set) var cloud: FaultInjector
  let randomness: SeededRandomness
  let time: any TimeSource
  private var program: Connection
  private var engine: DatabaseSync?

  init(
    _ name: String, _ world: World, schema: String, skew: Int64 = 0, foreignKeys: Bool = true, journal: String = "WAL"
  ) throws {
    self.name = name
    place = world.place
    folder = world.scenarioFolder
    path = world.folder.appendingPathComponent("\(name).db").path
    cloud = try Device.cloud(of: world.user, world)
    randomness = SeededRandomness(seed: UInt64(name.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) }))
    time = world.clock.skewed(byMilliseconds: skew)
    program = try Connection(path: path, mode: .create)
    try program.execute("PRAGMA journal_mode = \(journal); PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF")")
    if !schema.isEmpty { try program.execute(schema) }
  }

  private static func cloud(of user: String, _ world: World) throws -> FaultInjector {
    let limits = CloudLimits(entriesPerRequest: world.entriesPerRequest)
    return FaultInjector(AlteredCloud(try world.server.cloud(user: user, limits: limits), world.alterations))
  }

  /// From now on the device holds the token of `user`, who need not be the file's.
  func signIn(as user: String, _ world: World) throws {
    cloud = try Device.cloud(of: user, world)
    restart()
  }

  // MARK: Programs

  /// Runs statements as another program would. With `at`, the program's clock shows that many seconds after the world's
  /// start.
  func sql(_ text: String, at seconds: Int64? = nil) throws {
    let before = try lastLogID()
    try program.execute(text)
    guard let seconds, let before else { return }
    let time = 2_440_587.5 + Double(World.start + seconds * 1_000) / 86_400_000
    try program.execute("UPDATE cairn_log SET time = \(time) WHERE id > \(before)")
  }

  /// Closes the program's connection while `body` puts another file in its place.
  func reconnect(_ body: () throws -> Void) throws {
    let foreignKeys = try program.scalar("PRAGMA foreign_keys")
    program = try Connection(path: ":memory:", mode: .create)
    try body()
    program = try Connection(path: path, mode: .readWrite)
    try program.execute("PRAGMA foreign_keys = \(foreignKeys == .integer(1) ? "ON" : "OFF")")
  }

  private func lastLogID() throws -> Int64? {
    guard try program.scalar("SELECT 1 FROM sqlite_master WHERE name = 'cairn_log'") != nil else { return nil }
    guard case .integer(let id)? = try program.scalar("SELECT coalesce(max(id), 0) FROM cairn_log") else { return 0 }
    return id
  }

  func rows(_ query: String) throws -> [[Value]] { try program.rows(query) }

  func scalar(_ query: String) throws -> Value? { try program.scalar(query) }

  /// The first column of every row, as text.
  func texts(_ query: String) throws -> [String] { try rows(query).map { Device.text($0[0]) } }

  /// Every row of a query as `a|b|c`, NULL as `∅`; sorted, so that devices can be compared.
  func picture(_ query: String) throws -> [String] {
    try rows(query).map { $0.map(Device.text).joined(separator: "|") }.sorted()
  }

  static func text(_ value: Value) -> String {
    switch value {
    case .null: "∅"
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text): text
    case .malformedText(let bytes): "malformed(\(bytes))"
    case .blob(let bytes): "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }
  }

  /// A second connection of a program, with settings of its own.
  func connection() throws -> Connection { try Connection(path: path, mode: .readWrite) }

  // MARK: Cairn

  @discardableResult
  func prepare(
    _ mode: Preparation.Mode?, tables: [String] = [], exclude: [String] = [], naturalKeys: [String] = []
  ) throws -> Preparation.Outcome {
    var options = Preparation.Options(
      path: path, selection: SelectionOptions(tables: tables, exclude: exclude, naturalKeys: naturalKeys), mode: mode,
      place: place)
    options.matchIntegers = matchIntegers
    options.newIntegers = newIntegers
    return try Preparation(options, cloud: cloud, time: time, randomness: randomness).run()
  }

  /// Answers of the next ``prepare(_:tables:exclude:naturalKeys:)`` (tables L5).
  var matchIntegers: [String] = []
  var newIntegers: [String] = []

  /// One sync, as `cairn sync` does it. The engine stays open between syncs; see ``restart()``.
  @discardableResult
  func sync(_ scope: SyncRequest.Scope = .all) throws -> SyncReport { try open().sync(SyncRequest(scope)) }

  func open() throws -> DatabaseSync {
    if let engine { return engine }
    let opened = try DatabaseSync(path: path, time: time, randomness: randomness) { [cloud] _ in cloud }
    engine = opened
    return opened
  }

  /// Closes the engine, as the end of its process does; the next sync opens another.
  func restart() { engine = nil }

  func status() throws -> StatusReport { try SyncedDatabase(path: path, time: time, randomness: randomness).status() }

  func parked() throws -> [ParkedRecord] { try SyncedDatabase(path: path, time: time, randomness: randomness).parked() }

  /// The operations sent since the last call, as `save items:i1`, `delete items:i1`; records of schemas left out.
  func sentSinceLastAsked() -> [String] {
    let operations = cloud.sentOperations
    cloud.clearLog()
    return operations.filter { !$0.record.id.name.hasPrefix("cairn_table:") }.map {
      "\($0.kind.isDelete ? "delete" : "save") \($0.record.id.name)"
    }
  }
}
