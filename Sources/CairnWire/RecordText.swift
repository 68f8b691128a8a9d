import CairnRecords

/// A whole record as JSON text, for keeping fetched records in a file until they can be applied. The same form as in
/// answers, with exact numbers.
public enum RecordText {
  public static func encode(_ record: Record) -> [UInt8] {
    var writer = JSONWriter()
    writer.record(record, .client)
    return writer.bytes
  }

  /// - Parameter zone: the zone of a record whose text names none.
  public static func decode(_ bytes: [UInt8], in zone: ZoneID) throws(WireError) -> Record {
    try JSONReader.parse(bytes) { reader throws(WireError) in
      var entry = try reader.readEntry(zone: zone, isRequest: false)
      guard let record = entry.takeRecord(in: entry.zone ?? zone) else {
        throw WireError(.syntax, "a stored record has no name", at: 0)
      }
      return record
    }
  }
}
