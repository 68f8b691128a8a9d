import CairnRecords
import CairnSQLite
import CairnWire

/// What the zone's `cairn_table` records say, as last fetched: names and types that devices share (tables 1.4).
struct PublishedTables {
  private let settings: FileSettings
  private static let prefix = "published/"

  init(_ settings: FileSettings) { self.settings = settings }

  func take(_ record: Record) throws {
    try settings.set(Self.prefix + record.id.name, String(decoding: RecordText.encode(record), as: UTF8.self))
  }

  /// The tables that can be read; a record that can't is left to newer releases.
  func tables(in zone: ZoneID) throws -> [PublishedTable] {
    try settings.all(prefix: Self.prefix).sorted { $0.key < $1.key }.compactMap { _, text in
      let record = try RecordText.decode(Array(text.utf8), in: zone)
      do {
        return try PublishedTable(recordName: record.id.name, fields: record.fields)
      } catch {
        // A form that only a newer release reads: its names are not needed for what this one does.
        return nil
      }
    }
  }
}
