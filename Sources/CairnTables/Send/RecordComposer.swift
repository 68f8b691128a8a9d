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
    var content = try content(record, plan, row: row, name: name)
    let codec = file.codec(plan)
    let isReplacement = record.life == .reinserted || record.flags.contains(.replaces)
    let assets = try OutgoingAssets(file).choose(&content, plan, name: name, isOnServer: record.tag != nil) { field in
      !isReplacement && !record.dirty.contains(field)
    }
    var outgoing = Record(
      id: RecordID(name: name, zone: file.zone), type: plan.wireName, changeTag: record.tag)
    if record.tag == nil {
      outgoing.fields = codec.encode(content)
      return RecordOperation(.create, outgoing)
    }
    if isReplacement {
      outgoing.fields = codec.encode(content)
      return RecordOperation(.replace, outgoing)
    }
    outgoing.fields = codec.encodeChanges(content, released: assets.released) { field in
      record.dirty.contains(field) || assets.alsoSent.contains(field)
    }
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
    if plan.localTargets.isEmpty {
      for value in row { values.append(.value(value)) }
    } else {
      for (column, value) in row.enumerated() { values.append(try field(value, column, plan)) }
    }
    var (clocks, keptFields) = (record.clocks, record.kept)
    if let merge = try mergeWithParked(record, plan, row, name) {
      for (column, change) in merge.changes { values[column] = Self.field(change) }
      (clocks, keptFields) = (merge.record.clocks, merge.record.kept)
    }
    var content = RecordContent(life: clocks.life, cut: clocks.cut, values: values, clocks: clocks.columns)
    if plan.keyKind == .mapped {
      content.key = record.wish ?? record.key.integer
    }
    if let kept = keptFields {
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

  private static func field(_ change: RecordMerge.Change) -> FieldContent {
    switch change {
    case .set(.value(let value)): .value(value)
    case .set(.reference(let name)): .reference(name)
    case .setDefault: .value(.null)
    }
  }

  /// A newer version of the record is parked: what it knows must not be taken back by this save, neither clocks nor
  /// values (tables M2, M9).
  private func mergeWithParked(_ record: RecordRow, _ plan: TablePlan, _ row: [Value], _ name: String) throws
    -> RecordMerge?
  {
    guard try file.inbox.has(.parked), let parked = try file.inbox.find(name)?.record,
      case .success(let version) = FetchedVersion.decode(parked, file.codec(plan))
    else { return nil }
    return RecordMerge(local: record, cells: try file.cells(of: row, plan), fetched: version)
  }
}
