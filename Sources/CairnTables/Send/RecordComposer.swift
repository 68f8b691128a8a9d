import CairnRecords
import CairnSQLite

/// Builds the record that a save sends (tables U2).
struct RecordComposer {
  /// Why a record can't be sent now.
  enum Obstacle: Error {
    /// A foreign key names a row that has no record (tables U5).
    case missingParent(String)
  }

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// The operation of a pending save: create, update with the fields that are not confirmed, or replace.
  func save(_ record: RecordRow, _ plan: TablePlan, row: [Value], name: String) throws -> RecordOperation {
    let content = try content(record, plan, row: row, name: name)
    let codec = file.codec(plan)
    var outgoing = Record(
      id: RecordID(name: name, zone: file.zone), type: plan.wireName, changeTag: record.tag)
    if record.tag == nil {
      outgoing.fields = codec.encode(content)
      return RecordOperation(.create, outgoing)
    }
    if record.life == .reinserted || record.flags.contains(.replaces) {
      outgoing.fields = codec.encode(content)
      return RecordOperation(.replace, outgoing)
    }
    outgoing.fields = codec.encodeChanges(content) { record.dirty.contains($0) }
    return RecordOperation(.update, outgoing)
  }

  /// The whole record under its present tag, for parking a row that is put aside.
  func whole(_ record: RecordRow, _ plan: TablePlan, row: [Value], name: String) throws -> Record {
    let content = try content(record, plan, row: row, name: name)
    return Record(
      id: RecordID(name: name, zone: file.zone), type: plan.wireName, changeTag: record.tag,
      fields: file.codec(plan).encode(content))
  }

  private func content(
    _ record: RecordRow, _ plan: TablePlan, row: [Value], name: String
  ) throws -> RecordContent {
    var values: [FieldContent] = []
    values.reserveCapacity(row.count)
    for (column, value) in row.enumerated() { values.append(try field(value, column, plan)) }
    var clocks = record.clocks
    try takeParkedClocks(name, plan, &clocks)
    var content = RecordContent(life: clocks.life, cut: clocks.cut, values: values, clocks: clocks.columns)
    if plan.keyKind == .mapped {
      content.key = record.wish ?? record.key.integer
    }
    if let kept = record.kept {
      content.kept = clocks.kept.keys.sorted().map { kept.field($0, clock: clocks.kept[$0] ?? 0) }
    }
    return content
  }

  private func field(_ value: Value, _ column: Int, _ plan: TablePlan) throws -> FieldContent {
    guard let target = plan.columns[column].localTarget, case .integer(let integer) = value else {
      return .value(value)
    }
    guard let parent = try file.names.name(ofMapped: integer, in: target) else {
      throw Obstacle.missingParent("\(plan.columns[column].name) = \(integer)")
    }
    return .reference(parent)
  }

  /// A newer version of the record is parked: what it knows of clocks must not be taken back by this save (tables M9).
  private func takeParkedClocks(_ name: String, _ plan: TablePlan, _ clocks: inout FieldClocks) throws {
    guard try file.inbox.has(.parked), let parked = try file.inbox.find(name)?.record,
      case .success(let version) = FetchedVersion.decode(parked, file.codec(plan))
    else { return }
    clocks.life = max(clocks.life, version.clocks.life)
    clocks.cut = maximum(clocks.cut, version.clocks.cut)
    for column in plan.columns.indices where plan.isField(column) {
      clocks.columns[column] = max(clocks.columns[column], version.clocks.columns[column])
    }
    for (name, clock) in version.clocks.kept { clocks.kept[name] = max(clocks.kept[name] ?? 0, clock) }
  }
}
