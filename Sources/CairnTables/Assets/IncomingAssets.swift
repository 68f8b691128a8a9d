import CairnEngine
import CairnRecords
import CairnSQLite

/// Puts the bytes of assets into fetched records, so that everything behind sees plain values (tables M16).
///
/// The bytes come from those that were fetched, or from the local row if it has the same. A record that lacks some
/// keeps its assets as they came, and is parked for them.
struct IncomingAssets {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// A value of a fetched record that lies in an asset.
  private struct Place {
    var column: Int
    var large: LargeValue

    /// What its bytes are held under: foreign clients do not say a hash.
    var hash: String { large.hash.isEmpty ? "=" + large.asset.fileChecksum : large.hash }
  }

  // MARK: What is needed

  func needed(by records: [Record]) throws -> [NeededAsset] {
    var found: [NeededAsset] = []
    var hashes: Set<String> = []
    for record in records where record.fields.hasAssets {
      guard let plan = file.catalog.plan(wireName: record.type), try !isEcho(record, plan),
        let content = content(of: record, plan)
      else { continue }
      for place in places(content) where !hashes.contains(place.hash) {
        if try file.large.hasBytes(place.hash) || localBytes(place, record, plan) != nil { continue }
        hashes.insert(place.hash)
        found.append(NeededAsset(hash: place.hash, asset: place.large.asset))
      }
    }
    return found
  }

  /// Takes bytes in if they are what the record says.
  func hold(_ bytes: [UInt8], _ hash: String) throws -> Bool {
    guard hash.hasPrefix("=") || LargeValue.hash(of: bytes) == hash else { return false }
    try file.transaction { try file.large.put(bytes, hash) }
    return true
  }

  // MARK: Putting bytes in

  /// The version that the server's tag says is here already needs no content: its assets are not asked for, and it is
  /// left out. Unless rows are compared with the server's (tables T29, V2), or a parked version waits for it.
  func isEcho(_ record: Record, _ plan: TablePlan) throws -> Bool {
    guard file.gaps[plan.number] == nil, let tag = record.changeTag,
      try file.names.record(named: record.id.name, plan)?.tag == tag
    else { return false }
    return try file.inbox.find(record.id.name) == nil
  }

  /// The record with all values in their fields; nil while some of its assets are not to be had.
  func resolved(_ record: Record, _ plan: TablePlan) throws -> Record? {
    guard var content = content(of: record, plan) else { return record }
    for place in places(content) {
      guard let bytes = try file.large.bytes(place.hash) ?? localBytes(place, record, plan) else { return nil }
      content.values[place.column] = .value(place.large.value(bytes))
    }
    var resolved = record
    resolved.fields = file.codec(plan).encode(content)
    return resolved
  }

  /// The record as it is applied, with what the server has noted.
  func taken(_ record: Record, _ plan: TablePlan) throws -> Record {
    if try !record.fields.hasAssets && file.large.knowsNothing() { return record }
    try note(record, plan)
    return record.fields.hasAssets ? try resolved(record, plan) ?? record : record
  }

  /// Remembers which values of the server's version are assets.
  func note(_ record: Record, _ plan: TablePlan) throws {
    var known: [String: LargeStore.Known] = [:]
    guard record.fields.hasAssets else { return try file.large.setKnown(record.id.name, known) }
    if let content = content(of: record, plan) {
      for place in places(content) {
        known[plan.columns[place.column].wireName] = LargeStore.Known(
          hash: place.large.hash, checksum: place.large.asset.fileChecksum, size: place.large.asset.size)
      }
    }
    try file.large.setKnown(record.id.name, known)
  }

  // MARK: Parts

  /// Nil for a record that can't be read; that is told where it is applied.
  private func content(of record: Record, _ plan: TablePlan) -> RecordContent? {
    if case .success(let content) = file.codec(plan).content(of: record) { content } else { nil }
  }

  private func places(_ content: RecordContent) -> [Place] {
    content.values.enumerated().compactMap { column, value in
      if case .large(let large) = value { Place(column: column, large: large) } else { nil }
    }
  }

  /// The bytes of the local row, if they are those of the asset: most often another column has changed.
  private func localBytes(_ place: Place, _ record: Record, _ plan: TablePlan) throws -> [UInt8]? {
    guard !place.large.hash.isEmpty, let local = try file.names.record(named: record.id.name, plan), local.isAlive,
      let value = try file.columnValue(plan, place.column, local.key), value.isLargeText == place.large.isText
    else { return nil }
    let bytes = value.largeBytes
    guard bytes.count == place.large.asset.size else { return nil }
    return LargeValue.hash(of: bytes) == place.large.hash ? bytes : nil
  }
}

extension RecordBodyCodec {
  func content(of record: Record) -> Result<RecordContent, RecordBodyError> {
    Result { () throws(RecordBodyError) in
      try decode(record.fields, foreignClock: record.modified?.timestamp ?? 0)
    }
  }
}
