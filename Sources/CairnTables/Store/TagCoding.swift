import CairnRecords
import CairnSQLite

/// Change tags in few bytes.
///
/// All tags that Cairn's server gives in one epoch end in the same six characters; what is before them is a position in
/// base 36. The file keeps one such ending (`cairn_setting`, `tagEnding`), the first that it met, and of tags with that
/// ending the position alone, as an integer. Other tags are kept as they are.
final class TagCoding {
  /// Stands for "no tag yet" in new records, as large as the tag that comes when they are confirmed: so that a whole
  /// table of records does not outgrow its pages then.
  static let room: Int64 = -1 << 31
  /// A condition on `cairn_record`.
  static let isTagged = "tag <> \(room)"

  private static let endingLength = 6
  private static let greatest: Int64 = 1 << 40

  private let settings: FileSettings
  private let connection: Connection
  private var epoch = -1
  private var ending: String?

  init(_ connection: Connection) {
    self.connection = connection
    settings = FileSettings(connection)
  }

  func bind(_ tag: ChangeTag?, _ isNew: Bool, to s: Statement, _ index: Int32) throws {
    guard let tag else { return isNew ? try s.bind(index, Self.room) : try s.bindNull(index) }
    if let (position, end) = Self.parts(tag.rawValue), try knownEnding(end) == end {
      return try s.bind(index, position)
    }
    try s.bind(index, tag.rawValue)
  }

  func read(_ s: Statement, _ column: Int32) throws -> ChangeTag? {
    switch s.storageClass(column) {
    case .null: return nil
    case .integer:
      let position = s.integer(column)
      if position == Self.room { return nil }
      guard (0...Self.greatest).contains(position) else {
        throw TablesError.damagedMetadata("cairn_record has the change tag \(position), which no server gives")
      }
      guard let ending = try knownEnding(nil) else {
        throw TablesError.damagedMetadata("cairn_record has short change tags, but their ending is not known")
      }
      return ChangeTag(Self.text(position, ending))
    default: return ChangeTag(s.text(column))
    }
  }

  /// `String(position, radix: 36) + ending` in one piece: every record that is read has a tag.
  private static func text(_ position: Int64, _ ending: String) -> String {
    var digits = 1
    var bound: Int64 = 36
    while bound <= position {
      digits += 1
      bound *= 36
    }
    return String(unsafeUninitializedCapacity: digits + ending.utf8.count) { buffer in
      var rest = position
      for i in stride(from: digits - 1, through: 0, by: -1) {
        let digit = UInt8(rest % 36)
        buffer[i] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
        rest /= 36
      }
      for (i, byte) in ending.utf8.enumerated() { buffer[digits + i] = byte }
      return digits + ending.utf8.count
    }
  }

  /// A position and the ending behind it; nil unless the two give exactly the same tag again.
  private static func parts(_ tag: String) -> (Int64, String)? {
    let bytes = tag.utf8
    guard bytes.count > endingLength, bytes.first != UInt8(ascii: "0") else { return nil }
    let middle = bytes.index(bytes.endIndex, offsetBy: -endingLength)
    var position: Int64 = 0
    for byte in bytes[..<middle] {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): position = position * 36 + Int64(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "z"): position = position * 36 + Int64(byte - UInt8(ascii: "a")) + 10
      default: return nil
      }
      if position > greatest { return nil }
    }
    return (position, String(tag[middle...]))
  }

  /// The ending that this file keeps short; the first that is met becomes it. What was read holds within one
  /// transaction.
  private func knownEnding(_ met: String?) throws(SQLiteError) -> String? {
    if let ending, epoch == connection.epoch, connection.isInTransaction { return ending }
    epoch = connection.epoch
    ending = try settings.get(.tagEnding)
    if ending == nil, let met {
      try settings.set(.tagEnding, met)
      ending = met
    }
    return ending
  }
}
