import CairnEngine
import CairnRecords
import CairnSQLite

/// Makes every record of a file new, for a zone that was lost on the server and is to hold it all again (tables L11):
/// each is sent under its own name and clocks, without a tag. What was dead is forgotten.
///
/// Parked versions are sent too, though they have no row here: nobody else may have them any more (DESIGN G6).
struct FreshStart {
  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// Callers hold a transaction.
  func run() throws {
    try file.connection.run("DELETE FROM cairn_record WHERE NOT \(RecordStore.isAlive)")
    let shift = StateBits.revisionShift
    try file.connection.run(
      """
      UPDATE cairn_record SET tag = NULL, pending = 1,
        state = (((state >> \(shift)) + 1) << \(shift)) | (state & \(StateBits.keptMask)),
        rest = nullif(json_remove(
          CASE WHEN json_extract(rest, '$.edit') IS NULL THEN rest
            ELSE json_set(rest, '$.clocks', json_extract(rest, '$.edit')) END,
          '$.edit', '$.dirty', '$.reason', '$.retry'), '{}')
      """)
    try file.connection.run("DELETE FROM cairn_inbox WHERE stage < 2")
    for entry in try file.inbox.parked() { try takeUp(entry) }
  }

  /// A record for a parked version that has none here. Versions that can't be read, or have no table here, only wait
  /// on.
  private func takeUp(_ entry: Inbox.Entry) throws {
    guard let record = entry.record, let plan = file.catalog.plan(wireName: record.type),
      case .success(let version) = FetchedVersion.decode(record, file.codec(plan)),
      try file.names.record(named: entry.name, plan) == nil
    else { return }
    var row = RecordRow(table: plan.number, key: .text(entry.name), name: .text(entry.name), clocks: version.clocks)
    if plan.keyKind == .mapped, let uuid = RecordNameCodec.uuid(entry.name, table: plan.wireName) {
      row.name = .blob(uuid)
      row.key = row.name
    } else if !plan.isNamedByParent, case .key(let key) = try file.names.resolve(entry.name, plan) {
      row.key = key
      row.name = try file.names.storedName(entry.name, for: key, plan)
    }
    row.flags = .parked
    row.pending = .save
    row.dirty = .all
    row.revision = 1
    row.kept = version.kept
    row.wish = version.wish
    // A row that is not the record's stands under its key: the version waits on.
    _ = try file.records.insert(row)
  }
}
