import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// A run of random requests, a model that shares no code with the server, and three readers that follow their feeds.
struct VisibilityRun {
  struct Random {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 33
    }
    mutating func below(_ n: Int) -> Int { Int(next() % UInt64(n)) }
    mutating func pick<T>(_ list: [T]) -> T? { list.isEmpty ? nil : list[below(list.count)] }
  }

  /// What is stored, by the model.
  struct Model {
    var parents: [String: String?] = [:]
    /// By root, who has accepted and may write.
    var shares: [String: [String: Bool]] = [:]
    var invited: [String: [String: Bool]] = [:]

    func ancestors(_ name: String) -> [String] {
      var found = [name]
      while let last = found.last, let parent = parents[last] ?? nil { found.append(parent) }
      return found
    }

    func visible(to user: String) -> Set<String> {
      var seen: Set<String> = []
      for name in parents.keys where ancestors(name).contains(where: { shares[$0]?[user] != nil }) { seen.insert(name) }
      for (root, users) in shares where users[user] != nil { seen.insert("S-" + root) }
      return seen
    }

    /// What is in the zone: a root with invitations has a share.
    var all: Set<String> { Set(parents.keys).union(invited.keys.map { "S-" + $0 }) }

    mutating func remove(_ name: String) {
      parents[name] = nil
      shares[name] = nil
      invited[name] = nil
    }

    func mayWrite(_ user: String, _ name: String) -> Bool {
      ancestors(name).contains { shares[$0]?[user] == true }
    }
  }

  /// What one reader has put together from pages.
  struct Reader {
    var records: [String: ChangeTag?] = [:]
    var token: ChangeToken?
    var databaseToken: ChangeToken?

    mutating func take(_ page: FeedPage) {
      for entry in page.entries {
        switch entry {
        case .record(let record): records[record.id.name] = record.changeTag
        case .tombstone(let end): records[end.id.name] = nil
        }
      }
      token = page.token
    }

    mutating func begin() { (records, token) = ([:], nil) }
  }

  let world: ShareWorld
  let seed: UInt64
  var random: Random
  var model = Model()
  var readers: [String: Reader] = ["anna": Reader(), "ben": Reader(), "cleo": Reader()]
  var number = 0

  init(seed: UInt64) throws {
    world = try ShareWorld()
    self.seed = seed
    random = Random(state: seed)
  }

  private func caller(_ name: String) -> Caller {
    name == "anna" ? world.anna : name == "ben" ? world.ben : world.cleo
  }

  mutating func step() throws {
    switch random.below(20) {
    case 0..<4: try create()
    case 4..<6: try touch()
    case 6..<8: try move()
    case 8: try remove()
    case 9: try share()
    case 10, 11: try accept()
    case 12: try leave()
    case 13: try batch()
    case 14: try removeTree()
    case 15 where random.below(6) == 0: try renewZone()
    case 16 where random.below(3) == 0: try passTime()
    case 17, 18: try peek(random.pick(["anna", "ben", "cleo"]) ?? "ben")
    default: try write()
    }
  }

  /// Moves and edits in one request, which never make a circle.
  private mutating func batch() throws {
    var operations: [RecordOperation] = []
    for name in model.parents.keys.sorted().shuffled(by: &random).prefix(2 + random.below(4)) {
      guard random.below(3) > 0 else {
        operations.append(
          RecordOperation(.forceUpdate, world.record(world.anna, name, ["n": .int64(Int64(random.below(1_000)))])))
        continue
      }
      let parent = random.below(4) == 0 ? nil : random.pick(model.parents.keys.sorted())
      if let parent, model.ancestors(parent).contains(name) { continue }
      operations.append(RecordOperation(.forceReplace, world.record(world.anna, name, parent: parent)))
      model.parents[name] = .some(parent)
    }
    let outcomes = try world.modify(world.anna, operations)
    #expect(outcomes.allSatisfy { $0.error == nil }, "seed \(seed): \(outcomes)")
  }

  /// Deletes a record and all that is below it in one request; the shares of what goes, go.
  private mutating func removeTree() throws {
    guard let top = random.pick(model.parents.keys.sorted()) else { return }
    let names = model.parents.keys.filter { model.ancestors($0).contains(top) }.sorted().shuffled(by: &random)
    let outcomes = try world.modify(
      world.anna, names.map { RecordOperation(.forceDelete, world.record(world.anna, $0)) }, atomic: true)
    #expect(outcomes.allSatisfy { $0.isDeleted }, "seed \(seed): \(outcomes)")
    for name in names { model.remove(name) }
  }

  /// The owner deletes the zone and makes it again.
  private mutating func renewZone() throws {
    let id = ZoneID(name: "Notes")
    _ = try world.core.modifyZones(world.anna, ShareWorld.own, [.delete(id)])[0].get()
    if random.below(2) == 0 { try peek("ben") }
    _ = try world.core.modifyZones(world.anna, ShareWorld.own, [.create(id)])[0].get()
    model = Model()
  }

  /// Tombstones get old, and what is older than the retention goes.
  private mutating func passTime() throws {
    world.clock.advance(milliseconds: world.core.settings.tombstoneRetention / 2 + 1)
    try world.core.pruneTombstones()
  }

  /// One page, after which the reader is away for a while.
  private mutating func peek(_ user: String) throws {
    guard var reader = readers[user] else { return }
    var request = ZoneFeedQuery(zone: world.zone(caller(user)), token: reader.token)
    request.resultsLimit = 1 + random.below(3)
    switch try world.core.changes(caller(user), world.scope(caller(user)), [request])[0] {
    case .success(let page): reader.take(page)
    case .failure(let error) where error.code == .changeTokenExpired: reader.begin()
    case .failure(let error): #expect(error.code == .zoneNotFound, "seed \(seed): \(error)")
    }
    readers[user] = reader
  }

  private mutating func create() throws {
    number += 1
    let name = "r\(number)"
    let parent = random.below(3) == 0 ? nil : random.pick(model.parents.keys.sorted())
    try world.save(world.anna, name, parent: parent)
    model.parents[name] = .some(parent)
  }

  private mutating func touch() throws {
    guard let name = random.pick(model.parents.keys.sorted()) else { return }
    try world.save(world.anna, name, ["n": .int64(Int64(random.below(1_000)))])
  }

  private mutating func move() throws {
    guard let name = random.pick(model.parents.keys.sorted()) else { return }
    let parent = random.below(4) == 0 ? nil : random.pick(model.parents.keys.sorted())
    let isRound = parent.map { model.ancestors($0).contains(name) } ?? false
    let outcome = try world.save(world.anna, name, parent: parent, kind: .forceReplace)
    #expect((outcome.error?.code == .badRequest) == isRound, "seed \(seed): move \(name) below \(parent ?? "nothing")")
    if outcome.error == nil { model.parents[name] = .some(parent) }
  }

  private mutating func remove() throws {
    guard let name = random.pick(model.parents.keys.sorted()) else { return }
    let hasChildren = model.parents.contains { $0.value == name }
    let outcome = try world.delete(world.anna, name)
    #expect(outcome.isDeleted == !hasChildren, "seed \(seed): delete \(name)")
    if outcome.isDeleted { model.remove(name) }
  }

  private mutating func share() throws {
    guard let root = random.pick(model.parents.keys.sorted()) else { return }
    if model.shares[root] != nil, random.below(3) == 0 {
      #expect(try world.delete(world.anna, "S-" + root).isDeleted, "seed \(seed)")
      model.shares[root] = nil
      model.invited[root] = nil
      return
    }
    var users: [String: Bool] = [:]
    for user in ["ben", "cleo"] where random.below(3) > 0 { users[user] = random.below(2) == 0 }
    try world.share(
      root,
      with: users.sorted { $0.key < $1.key }.map { world.invitation(caller($0.key), $0.value ? .readWrite : .readOnly) }
    )
    model.invited[root] = users
    model.shares[root] = (model.shares[root] ?? [:]).filter { users[$0.key] != nil }.reduce(into: [:]) {
      $0[$1.key] = users[$1.key]
    }
  }

  private mutating func accept() throws {
    guard let root = random.pick(model.invited.keys.sorted()), let user = random.pick(["ben", "cleo"]),
      let guid = try world.stored(world.anna, root)?.sharing?.shortGUID
    else { return }
    let result = try world.core.acceptShares(caller(user), ShareWorld.open, [ShareQuery(guid: guid)])[0]
    let right = model.invited[root]?[user]
    switch result {
    case .success:
      #expect(right != nil, "seed \(seed): \(user) accepts \(root)")
      model.shares[root]?[user] = right
    case .failure(let error): #expect(right == nil && error.code == .accessDenied, "seed \(seed): \(error)")
    }
  }

  private mutating func leave() throws {
    guard let user = random.pick(["ben", "cleo"]),
      let root = random.pick(model.shares.filter { $0.value[user] != nil }.keys.sorted())
    else { return }
    #expect(try world.delete(caller(user), "S-" + root).isDeleted, "seed \(seed)")
    model.shares[root]?[user] = nil
    model.invited[root]?[user] = nil
  }

  /// A participant saves or deletes any record, or makes a new one.
  private mutating func write() throws {
    guard let user = random.pick(["ben", "cleo"]), let name = random.pick(model.parents.keys.sorted()) else { return }
    let hasZone = !model.visible(to: user).isEmpty
    let mayWrite = model.mayWrite(user, name)
    let outcome: OperationOutcome
    if random.below(2) == 0 {
      outcome = try world.save(caller(user), name, ["n": .int64(Int64(random.below(1_000)))])
    } else {
      number += 1
      outcome = try world.save(caller(user), "r\(number)", parent: name)
      if outcome.error == nil { model.parents["r\(number)"] = .some(name) }
    }
    let expected: CloudError.Code? = mayWrite ? nil : hasZone ? .accessDenied : .zoneNotFound
    #expect(outcome.error?.code == expected, "seed \(seed): \(user) writes \(name)")
  }

  // MARK: Readers

  mutating func check() throws {
    for user in ["anna", "ben", "cleo"] {
      try read(user)
      let expected = user == "anna" ? model.all : model.visible(to: user)
      #expect(Set(readers[user]?.records.keys.map { $0 } ?? []) == expected, "seed \(seed): \(user) has followed")
      if !expected.isEmpty {
        let fresh = try world.feed(caller(user), size: 1 + random.below(7))
        #expect(fresh.records.sorted() == expected.sorted(), "seed \(seed): \(user) begins")
        #expect(fresh.deletions.isEmpty, "seed \(seed)")
      }
      // What was read is what is stored now, as the tags say.
      for (name, tag) in readers[user]?.records ?? [:] {
        #expect(try world.stored(world.anna, name)?.changeTag == tag, "seed \(seed): \(name) of \(user)")
      }
    }
  }

  /// Follows the database's feed, then the zone's, as a client does.
  private mutating func read(_ user: String) throws {
    guard var reader = readers[user] else { return }
    let database = try world.core.databaseChanges(
      caller(user), world.scope(caller(user)), since: reader.databaseToken)
    reader.databaseToken = database.token
    for zone in database.zones where zone.id.name == "Notes" {
      if zone.isDeleted {
        reader.begin()
        continue
      }
      do { try readZone(user, &reader) } catch let error as CloudError where error.code == .changeTokenExpired {
        reader.begin()
        try readZone(user, &reader)
      }
    }
    readers[user] = reader
  }

  private mutating func readZone(_ user: String, _ reader: inout Reader) throws {
    let size = 1 + random.below(5)
    while true {
      var request = ZoneFeedQuery(zone: world.zone(caller(user)), token: reader.token)
      request.resultsLimit = size
      let page = try world.core.changes(caller(user), world.scope(caller(user)), [request])[0].get()
      reader.take(page)
      if !page.moreComing { return }
    }
  }
}

extension Array {
  fileprivate func shuffled(by random: inout VisibilityRun.Random) -> [Element] {
    var rest = self
    var found: [Element] = []
    while !rest.isEmpty { found.append(rest.remove(at: random.below(rest.count))) }
    return found
  }
}
