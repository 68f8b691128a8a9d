import CairnRecords

/// How many bytes records take in a request, without encoding them (engine section 6).
enum RecordSize {
  /// What an operation takes at most, nearly: keys, punctuation and escaped text are allowed for.
  static func encoded(_ operation: RecordOperation) -> Int {
    let record = operation.record
    let frame = 160 + record.id.name.utf8.count + record.type.utf8.count
    return record.fields.reduce(frame) { sum, field in
      sum + 40 + field.name.utf8.count + (field.value.map { size($0, isEncoded: true) } ?? 4)
    }
  }

  /// What the values of a record take at least, assets aside: over the server's limit, it is refused for certain.
  static func least(_ record: Record) -> Int {
    record.fields.reduce(0) { sum, field in sum + (field.value.map { size($0, isEncoded: false) } ?? 0) }
  }

  private static func size(_ value: FieldValue, isEncoded: Bool) -> Int {
    switch value {
    case .string(let text): text.utf8.count * (isEncoded ? 9 : 8) / 8
    case .bytes(let bytes): isEncoded ? (bytes.count + 2) / 3 * 4 : bytes.count
    case .int64, .double, .timestamp: isEncoded ? 20 : 1
    case .reference(let reference): isEncoded ? 80 + reference.recordName.utf8.count : reference.recordName.utf8.count
    case .asset: isEncoded ? 400 : 0
    case .location: isEncoded ? 200 : 1
    case .list(_, let values): values.reduce(0) { $0 + 1 + size($1, isEncoded: isEncoded) }
    case .encrypted(let value): (isEncoded ? 24 : 0) + size(value, isEncoded: isEncoded)
    }
  }
}
