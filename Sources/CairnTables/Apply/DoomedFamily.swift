import CairnRecords
import CairnSQLite

/// A record that is to die: by a fetched deletion, or because a parent dies.
struct Doom {
  var record: RecordRow
  var plan: TablePlan
  var name: String
  /// Time of the delete.
  var clock: FieldClock
  var isTimeKnown = true
  /// Whether the server has deleted it; else its delete is still to be sent.
  var isExplicit: Bool
  /// Its row; nil if it has none.
  var row: [Value]?
  /// Tag of the version that dies, where that is not the record's.
  var tag: ChangeTag??
  /// The rows and parked records that refer to it.
  var edges: [Edge] = []

  struct Edge {
    var name: String
    var record: RecordRow?
    var row: [Value]?
    var plan: TablePlan
    var foreignKey: ForeignKeyPlan
    var touch: FieldClock
    var isUnsent: Bool
  }

  init(record: RecordRow, plan: TablePlan, name: String, clock: FieldClock, isExplicit: Bool) {
    self.record = record
    self.plan = plan
    self.name = name
    self.clock = clock
    self.isExplicit = isExplicit
  }

  /// Whether a child is later than the delete. With an unknown time, unsent children count as later (tables M12).
  func isEarlier(than edge: Edge) -> Bool { isTimeKnown ? edge.touch >= clock : edge.isUnsent }
}

/// What a set of deletions takes along, and what must stay because of rows that refer to it (tables M12).
///
/// 1. A row dies if it is deleted, or if it is earlier than the delete of a parent with ON DELETE CASCADE.
/// 2. Of these, a row stays if a row that does not die refers to it, but for SET NULL and SET DEFAULT; and so on
///   upwards.
struct DoomedFamily {
  private(set) var all: [Doom]
  private var places: [String: Int] = [:]
  /// Life clocks of those that stay, by place.
  private var kept: [Int: FieldClock] = [:]
  private let file: FileContext
  private let immortal: Set<String>

  init(_ file: FileContext, _ doomed: [Doom], immortal: Set<String>) throws {
    self.file = file
    self.immortal = immortal
    all = doomed
    for (i, doom) in doomed.enumerated() { places[doom.name] = i }
    try gather()
    findSurvivors()
  }

  /// The life clock with which a record stays; nil if it goes.
  func keeps(_ doom: Doom) -> FieldClock? { places[doom.name].flatMap { kept[$0] } }

  func goes(_ name: String) -> Bool { places[name].map { kept[$0] == nil } ?? false }

  /// Those that go, children before parents.
  var childrenFirst: [Doom] {
    var openChildren = Array(repeating: 0, count: all.count)
    var parents = Array(repeating: [Int](), count: all.count)
    for i in all.indices where kept[i] == nil {
      for edge in all[i].edges {
        guard let child = places[edge.name], child != i, kept[child] == nil else { continue }
        openChildren[i] += 1
        parents[child].append(i)
      }
    }
    var result: [Doom] = []
    var taken = Array(repeating: false, count: all.count)
    var ready = all.indices.filter { kept[$0] == nil && openChildren[$0] == 0 }
    var next = 0
    var left = all.indices.filter { kept[$0] == nil }[...]
    while true {
      while next < ready.count {
        let i = ready[next]
        next += 1
        if taken[i] { continue }
        taken[i] = true
        result.append(all[i])
        for parent in parents[i] {
          openChildren[parent] -= 1
          if openChildren[parent] == 0 { ready.append(parent) }
        }
      }
      // What is left refers to each other in circles: foreign keys are deferred, any of them may be the first.
      while let first = left.first, taken[first] { left.removeFirst() }
      guard let first = left.first else { return result }
      ready.append(first)
    }
  }

  // MARK: Who dies

  private mutating func gather() throws {
    let parked = try parkedChildren()
    var next = 0
    while next < all.count {
      var doom = all[next]
      doom.edges = try Self.edges(of: doom, file) + (parked[doom.name] ?? [])
      all[next] = doom
      next += 1
      for edge in doom.edges where edge.foreignKey.onDelete == .cascade && places[edge.name] == nil {
        guard let record = edge.record, !immortal.contains(edge.name), !doom.isEarlier(than: edge) else { continue }
        let clock = doom.isTimeKnown ? max(doom.clock, edge.touch.next) : edge.touch.next
        var child = Doom(record: record, plan: edge.plan, name: edge.name, clock: clock, isExplicit: false)
        child.isTimeKnown = doom.isTimeKnown
        child.row = edge.row
        places[edge.name] = all.count
        all.append(child)
      }
    }
  }

  /// The rows that refer to one that is to die.
  static func edges(of doom: Doom, _ file: FileContext) throws -> [Doom.Edge] {
    guard let row = doom.row else { return [] }
    var result: [Doom.Edge] = []
    for (number, foreignKey) in file.catalog.foreignKeys(to: doom.plan.number) {
      guard let child = file.catalog.plan(number) else { continue }
      for key in try file.keys(of: child, referringTo: row, foreignKey) {
        guard let record = try file.records.find(number, key: key), record.isAlive,
          let name = try file.names.name(of: record, child), name != doom.name, let childRow = try file.row(child, key)
        else { continue }
        result.append(
          Doom.Edge(
            name: name, record: record, row: childRow, plan: child, foreignKey: foreignKey,
            touch: record.clocks.touch, isUnsent: record.pending == .save))
      }
    }
    return result
  }

  /// Parked records by the names of the parents that they refer to.
  private func parkedChildren() throws -> [String: [Doom.Edge]] {
    guard try file.inbox.has(.parked) else { return [:] }
    var result: [String: [Doom.Edge]] = [:]
    let checking = ParentCheck(Applier(file, now: 0))
    for entry in try file.inbox.parked() {
      guard let record = entry.record, let plan = file.catalog.plan(wireName: record.type), !plan.foreignKeys.isEmpty,
        case .success(let version) = FetchedVersion.decode(record, file.codec(plan), leavesOutAssets: true)
      else { continue }
      for foreignKey in plan.foreignKeys {
        guard let parent = file.catalog.plan(foreignKey.parent),
          let name = try checking.nameOfParent(foreignKey, parent, version.cells), name != entry.name
        else { continue }
        result[name, default: []].append(
          Doom.Edge(
            name: entry.name, record: nil, row: nil, plan: plan, foreignKey: foreignKey, touch: version.clocks.touch,
            isUnsent: false))
      }
    }
    return result
  }

  // MARK: Who stays

  private mutating func findSurvivors() {
    var parents: [Int: [Int]] = [:]
    for (i, doom) in all.enumerated() {
      for edge in doom.edges { if let child = places[edge.name] { parents[child, default: []].append(i) } }
    }
    var work = Array(all.indices)
    while let i = work.popLast() {
      guard let life = lifeToKeep(all[i]), life > (kept[i] ?? -1) else { continue }
      kept[i] = life
      work += parents[i] ?? []
    }
  }

  private func lifeToKeep(_ doom: Doom) -> FieldClock? {
    var life: FieldClock? = immortal.contains(doom.name) ? max(doom.clock, doom.record.clocks.touch.next) : nil
    for edge in doom.edges {
      let touch: FieldClock
      if let place = places[edge.name] {
        guard let keptAt = kept[place] else { continue }
        touch = keptAt
      } else {
        touch = edge.touch
        // A parked child that is earlier dies when it is tried, or waits for its parent for another reason.
        if edge.record == nil, edge.foreignKey.onDelete == .cascade, !doom.isEarlier(than: edge) { continue }
      }
      switch edge.foreignKey.onDelete {
      case .setNull, .setDefault: continue
      case .cascade: life = max(life ?? 0, touch)
      case .restrict, .noAction: life = max(life ?? 0, touch, doom.clock.next)
      }
    }
    return life
  }
}
