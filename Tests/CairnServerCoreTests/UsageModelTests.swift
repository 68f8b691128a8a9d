import CairnEngine
import CairnPostgres
import CairnRecords
import CairnSQLite
import CairnTesting
import Foundation
import ProcessSupport
import StoreSupport
import Synchronization
import Testing

@testable import CairnServerCore

/// What users' records take, after random requests, beside a model that adds everything up (web-services section 12).
@Suite struct UsageModelTests {
  static let steps = ProcessInfo.processInfo.environment["CAIRN_SOAK"] == "1" ? 10_000 : 400

  @Test(
    "web-services W39: usage is the sum of what lives, and no request passes the quota, after random requests",
    .everyStore, arguments: [UInt64(3), 17, 92])
  func random(seed: UInt64) throws {
    var run = try UsageRun(seed: seed)
    for step in 0..<Self.steps {
      try run.step()
      if step % 40 == 0 { try run.check() }
    }
    try run.check()
    try run.checkAssets()
  }

  @Test("web-services W39: writers in several databases at two servers do not pass the quota together")
  func together() throws {
    let store = try TestStore(.postgres)
    let storages = try (0..<2).map { _ in try PostgresStorage(PostgresURL(store.url), writers: 4) }
    let servers = try storages.map { try CloudServer(storage: $0) }
    defer { for server in servers { server.close() } }
    let users = UserDirectory(storage: storages[0])
    let anna = try users.add("anna")
    let quota: Int64 = 40_000
    try users.setQuota(quota, for: "anna")
    let scopes = ["a", "b", "c"].map { DatabaseScope(container: "iCloud.\($0)") }
    let zone = ZoneID(name: "Notes")
    for scope in scopes { _ = try servers[0].modifyZones(anna, scope, [.create(zone)])[0].get() }
    try onThreads(6) { number in
      let (server, scope) = (servers[number % 2], scopes[number % 3])
      for i in 0..<60 {
        let record = Record(
          id: RecordID(name: "r\(number)-\(i % 20)", zone: zone), type: "Note",
          fields: ["t": .string(String(repeating: "x", count: 500 + (i * 37) % 400))])
        let kind: RecordOperation.Kind = i % 7 == 6 ? .forceDelete : .forceReplace
        let outcome = try server.modify(
          anna, scope, Modification(operations: [IncomingOperation(RecordOperation(kind, record))])
        ).outcomes[0]
        #expect(outcome.error == nil || outcome.error?.code == .quotaExceeded, "\(outcome)")
      }
    }
    let usage = try users.usages()[0].usage.bytes
    #expect(usage <= quota && usage > quota / 2)
    let counted = try PostgresCluster.shared().execute(
      "SELECT sum(length(fields) + 100) FROM cairn.records WHERE died IS NULL", in: store.url)
    #expect(counted == ["\(usage)"])
  }
}

/// Random requests with assets, cascades, refused deletes, zones that go, and a quota.
private struct UsageRun {
  struct Entry {
    var fields: Fields
    /// Asset numbers by field.
    var assets: [String: Int] = [:]
    var target: (name: String, cascades: Bool)?
  }

  let world: World
  let seed: UInt64
  var state: UInt64
  var model: [String: Entry] = [:]
  var quota: Int64?
  /// Bytes of an asset by its number: few, so that records share them.
  static func bytes(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number), count: 300 * (number + 1)) }

  init(seed: UInt64) throws {
    world = try World()
    self.seed = seed
    state = seed
  }

  mutating func below(_ n: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % n
  }

  mutating func pick() -> String? {
    let names = model.keys.sorted()
    return names.isEmpty ? nil : names[below(names.count)]
  }

  private func size(_ entry: Entry) -> Int64 {
    // The stored form of an asset has no receipt.
    let assets = Set(entry.assets.values).reduce(Int64(0)) { $0 + Int64(Self.bytes($1).count) }
    return Int64(FieldBlob.encode(entry.fields).count) + 100 + assets
  }

  var used: Int64 { model.values.reduce(0) { $0 + size($1) } }

  mutating func step() throws {
    switch below(40) {
    case 0: try setQuota()
    case 1 where below(4) == 0: try renewZone()
    case 2: world.clock.advance(milliseconds: Int64(below(7_200_000)))
    case 3: try world.server.core.removeUnusedAssets()
    case 4: try world.server.core.pruneTombstones()
    default: try request()
    }
  }

  private mutating func setQuota() throws {
    quota = below(3) == 0 ? nil : used + Int64(below(6_000)) - 1_500
    if let limit = quota { quota = max(0, limit) }
    try UserDirectory(storage: world.server.core.storage, clock: world.clock).setQuota(quota, for: "anna")
  }

  private mutating func renewZone() throws {
    let (core, caller, scope) = (world.server.core, world.cloud.caller, world.cloud.scope)
    _ = try core.modifyZones(caller, scope, [.delete(world.zone)])[0].get()
    _ = try core.modifyZones(caller, scope, [.create(world.zone)])[0].get()
    model = [:]
  }

  /// A few operations, each on its own; the model learns from the answers what was carried out and judges whether the
  /// sum stays below the quota.
  private mutating func request() throws {
    var operations: [RecordOperation] = []
    var wanted: [Entry?] = []
    var names: Set<String> = []
    for _ in 0..<1 + below(5) {
      let name = below(3) == 0 ? pick() ?? "r0" : "r\(below(60))"
      guard names.insert(name).inserted else { continue }
      if below(3) == 0 {
        operations.append(RecordOperation(.forceDelete, world.note(name)))
        wanted.append(nil)
      } else {
        let (record, entry) = try save(name)
        operations.append(RecordOperation(.forceReplace, record))
        wanted.append(entry)
      }
    }
    let before = used
    let outcomes = try world.cloud.modify(in: world.zone, operations, atomic: below(3) == 0)
    var gone: [String] = []
    for (i, outcome) in outcomes.enumerated() where outcome.error == nil {
      let name = operations[i].record.id.name
      if let entry = wanted[i] {
        model[name] = entry
      } else if model.removeValue(forKey: name) != nil {
        gone.append(name)
      }
    }
    while let name = gone.popLast() {
      for (source, entry) in model {
        guard let target = entry.target, target.name == name, target.cascades else { continue }
        model[source] = nil
        gone.append(source)
      }
    }
    if let quota { #expect(used <= max(quota, before), "seed \(seed): \(used) of \(quota), \(before) before") }
    for outcome in outcomes where outcome.error?.code == .quotaExceeded { #expect(quota != nil, "seed \(seed)") }
  }

  private mutating func save(_ name: String) throws -> (Record, Entry) {
    var sent: Fields = [:]
    var kept: Fields = [:]
    var entry = Entry(fields: [:])
    let text = FieldValue.string(String(repeating: "x", count: below(900)))
    sent.set("t", text)
    kept.set("t", text)
    if below(3) == 0 {
      for field in ["f", "g"] where below(2) == 0 {
        let number = below(5)
        guard let asset = try upload(number, name, field) else { continue }
        sent.set(field, .asset(asset))
        var stored = asset
        stored.receipt = nil
        kept.set(field, .asset(stored))
        entry.assets[field] = number
      }
    }
    if below(3) == 0, let target = pick(), target != name {
      let cascades = below(2) == 0
      let reference = FieldValue.reference(
        Reference(recordName: target, action: cascades ? .deleteSelf : .validate))
      sent.set("r", reference)
      kept.set("r", reference)
      entry.target = (target, cascades)
    }
    entry.fields = kept
    return (world.note(name, sent), entry)
  }

  /// Nil where there is no room for an upload.
  private func upload(_ number: Int, _ name: String, _ field: String) throws -> Asset? {
    do {
      return try world.upload(Self.bytes(number), for: AssetTarget(record: name, type: "Note", field: field))
    } catch let error as CloudError where error.code == .quotaExceeded { return nil }
  }

  // MARK: Checks

  func check() throws {
    let usages = try UserDirectory(storage: world.server.core.storage, clock: world.clock).usages()
    #expect(usages.first { $0.user.name == "anna" }?.usage.bytes == used, "seed \(seed)")
    #expect(try world.feed(size: 50).records.sorted() == model.keys.sorted(), "seed \(seed)")
    let overview = try world.server.core.overview(world.cloud.caller)
    let zones = overview.databases.flatMap(\.zones)
    #expect(zones.reduce(0) { $0 + $1.bytes } == used, "seed \(seed)")
  }

  /// Every asset of a live record can be read; of the others nothing is left in the end.
  func checkAssets() throws {
    for (name, entry) in model where !entry.assets.isEmpty {
      let stored = try #require(try world.stored(name))
      for (field, number) in entry.assets {
        guard case .asset(let asset)? = stored.fields[field], let path = asset.downloadURL else {
          Issue.record("seed \(seed): \(name) has lost \(field)")
          continue
        }
        var found: [UInt8] = []
        try world.server.core.download(String(path.dropFirst(CloudServer.downloadPath.utf8.count))).forEachPiece {
          found += $0
        }
        #expect(found == Self.bytes(number), "seed \(seed)")
      }
    }
    world.clock.advance(milliseconds: world.server.core.settings.receiptLife + 1)
    let wanted = Set(model.values.flatMap(\.assets.values)).count
    // What was in zones that are gone lets its assets go in jobs of its own.
    #expect(
      try eventually {
        try world.server.core.removeUnusedAssets()
        return world.server.assets.count == wanted
      }, "seed \(seed)")
  }
}
