import CairnEngine
import CairnRecords
import CairnTesting
import Testing

@testable import CairnServerCore

/// Feeds of shared zones (web-services sections 8 and 12).
@Suite(.everyStore) struct VisibilityTests {
  @Test(
    "web-services section 12: records that come into a share reach tokens older than that, those that leave are deleted"
  )
  func comingAndLeaving() throws {
    let world = try ShareWorld()
    for (name, parent) in [("root", nil), ("a", nil), ("b", "a"), ("c", "b")] as [(String, String?)] {
      try world.save(world.anna, name, parent: parent)
    }
    try world.share("root", accepted: [(world.ben, .readOnly)])
    let first = try world.feed(world.ben)
    #expect(first.records.sorted() == ["S-root", "root"])
    let tag = try world.stored(world.anna, "c")?.changeTag
    // Only `a` is written, yet all that is below it comes along.
    try world.save(world.anna, "a", parent: "root")
    let second = try world.feed(world.ben, since: first.token)
    #expect(second.records.sorted() == ["a", "b", "c"])
    // For the owner they have not changed.
    #expect(try world.stored(world.anna, "c")?.changeTag == tag)
    #expect(try world.stored(world.ben, "c")?.changeTag == tag)
    // `b` is written without parent and goes, `c` with it.
    try world.save(world.anna, "b", kind: .forceReplace)
    let third = try world.feed(world.ben, since: second.token)
    #expect(third.records == [])
    #expect(third.deletions.sorted() == ["b", "c"])
    #expect(try world.feed(world.ben, since: first.token).records == ["a"])
    // Who begins now is told of no deletion.
    #expect(try world.feed(world.ben).deletions == [])
    // What was never shared leaves no trace.
    try world.save(world.anna, "never")
    try world.delete(world.anna, "never")
    let fourth = try world.feed(world.ben, since: third.token)
    #expect(fourth.records.isEmpty && fourth.deletions.isEmpty)
    #expect(fourth.token == third.token)
    try world.checkInvariants()
  }

  @Test(
    "web-services section 12: another set of accepted shares in a zone ends tokens, so that older records are not missed"
  )
  func secondShare() throws {
    let world = try ShareWorld()
    for name in ["one", "two"] { try world.save(world.anna, name) }
    try world.share("two", with: [world.invitation(world.ben)])
    try world.share("one", accepted: [(world.ben, .readOnly)])
    let token = try world.feed(world.ben).token
    let database = try world.zones(world.ben).token
    try world.accept(world.ben, try #require(try world.stored(world.anna, "two")?.sharing?.shortGUID))
    #expect(failure { try world.feed(world.ben, since: token) }?.expiryCause == .incarnation)
    #expect(try world.zones(world.ben, since: database).zones == ["Notes"])
    let both = try world.feed(world.ben)
    #expect(both.records.sorted() == ["S-one", "S-two", "one", "two"])
    try world.delete(world.ben, "S-one")
    #expect(failure { try world.feed(world.ben, since: both.token) }?.expiryCause == .incarnation)
    #expect(try world.feed(world.ben).records.sorted() == ["S-two", "two"])
  }

  @Test("web-services section 8: entries of what left a share are pruned after the retention, and older tokens expire")
  func retention() throws {
    let world = try ShareWorld()
    try world.save(world.anna, "root")
    try world.save(world.anna, "child", parent: "root")
    try world.share("root", accepted: [(world.ben, .readOnly)])
    let token = try world.feed(world.ben).token
    try world.save(world.anna, "child", kind: .forceReplace)
    let after = try world.feed(world.ben, since: token).token
    world.clock.advance(milliseconds: world.core.settings.tombstoneRetention + 1)
    try world.core.pruneTombstones()
    #expect(failure { try world.feed(world.ben, since: token) }?.expiryCause == .retention)
    #expect(try world.feed(world.ben, since: after).token == after)
    #expect(try world.feed(world.ben).records.sorted() == ["S-root", "root"])
  }

  @Test(
    "web-services section 12: after random trees, shares, moves and deletes the union of feed pages is what may be seen",
    arguments: 0..<24)
  func random(seed: Int) throws {
    var run = try VisibilityRun(seed: UInt64(seed) &* 7_919 &+ 11)
    for _ in 0..<120 {
      try run.step()
      if run.random.below(4) == 0 { try run.check() }
    }
    try run.check()
    try run.world.checkInvariants()
  }
}

/// A run of random requests, a model that shares no code with the server, and three readers that follow their feeds.
private struct VisibilityRun {
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

    func mayWrite(_ user: String, _ name: String) -> Bool {
      ancestors(name).contains { shares[$0]?[user] == true }
    }
  }

  /// What one reader has put together from pages.
  struct Reader {
    var records: [String: ChangeTag?] = [:]
    var token: ChangeToken?
    var databaseToken: ChangeToken?
  }

  let world: ShareWorld
  let seed: UInt64
  var random: Random
  var model = Model()
  var readers: [String: Reader] = ["ben": Reader(), "cleo": Reader()]
  var number = 0

  init(seed: UInt64) throws {
    world = try ShareWorld()
    self.seed = seed
    random = Random(state: seed)
  }

  private func caller(_ name: String) -> Caller { name == "ben" ? world.ben : world.cleo }

  mutating func step() throws {
    switch random.below(14) {
    case 0..<4: try create()
    case 4..<6: try touch()
    case 6..<8: try move()
    case 8: try remove()
    case 9: try share()
    case 10, 11: try accept()
    case 12: try leave()
    default: try write()
    }
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
    guard outcome.isDeleted else { return }
    model.parents[name] = nil
    model.shares[name] = nil
    model.invited[name] = nil
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
    for user in ["ben", "cleo"] {
      try read(user)
      let expected = model.visible(to: user)
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
    let database = try world.core.databaseChanges(caller(user), ShareWorld.shared, since: reader.databaseToken)
    reader.databaseToken = database.token
    for zone in database.zones {
      if zone.isDeleted {
        reader.records = [:]
        reader.token = nil
        continue
      }
      do { try readZone(user, &reader) } catch let error as CloudError where error.code == .changeTokenExpired {
        reader.records = [:]
        reader.token = nil
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
      let page = try world.core.changes(caller(user), ShareWorld.shared, [request])[0].get()
      for entry in page.entries {
        switch entry {
        case .record(let record): reader.records[record.id.name] = record.changeTag
        case .tombstone(let end): reader.records[end.id.name] = nil
        }
      }
      reader.token = page.token
      if !page.moreComing { return }
    }
  }
}
