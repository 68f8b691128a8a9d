@testable import CairnTables

/// `cairn_record` as a query whose columns say one thing each (docs/internals/file-format.md).
enum RecordView {
  private static let base =
    "coalesce((SELECT p.clock FROM cairn_prefix p WHERE typeof(name) = 'integer' AND number = name), 0)"
  /// `uuid` is in upper-case hex, of mapped records.
  static let sql = """
    (SELECT tbl, key, name, pending, state & 3 AS life_status, (state >> 2) & 7 AS flags, state >> 6 AS revision,
      CASE typeof(name) WHEN 'blob' THEN hex(name) WHEN 'integer' THEN
        (SELECT hex(prefix) FROM cairn_prefix WHERE number = name) || printf('%012X', key) END AS uuid,
      iif(tag = \(TagCoding.room), NULL, tag) AS tag, iif(state & 32, clock, NULL) AS deleted,
      iif(state & 32, NULL, coalesce(json_extract(rest, '$.life'), clock + \(base))) AS life,
      json_extract(rest, '$.cut') AS cut, iif(state & 32, NULL, clock + \(base)) AS clock,
      coalesce(json_extract(rest, '$.clocks'), json_extract(rest, '$.edit')) AS clocks,
      coalesce(json_extract(rest, '$.dirty'),
        substr(json_extract(rest, '$.edit'), instr(json_extract(rest, '$.edit'), ' ') + 1)) AS dirty,
      json_extract(rest, '$.kept') AS kept, json_extract(rest, '$.reason') AS reason, json_extract(rest, '$.retry') AS retry FROM cairn_record)
    """
}
