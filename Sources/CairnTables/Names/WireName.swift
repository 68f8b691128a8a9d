/// The names that tables and columns have on the server (tables 1.3).
public enum WireName {
  /// Greatest length of a column's name, in bytes.
  public static let maximumLength = 255
  /// Greatest length of a table's name, in bytes: `cairn_table:` and the name are a record name.
  public static let maximumTableLength = 243
  /// Greatest length of the name of a table with mapped keys, in bytes: a UUID must fit behind it.
  public static let maximumMappedTableLength = 218

  /// The wire name of a column that no other column has taken.
  public static func column(_ name: String) -> String { encode(name, reserved: reservedColumns) }

  /// The wire name of a table that no other table has taken: its record type.
  public static func table(_ name: String) -> String { encode(name, reserved: reservedTables) }

  /// `name`, or `name_2`, `name_3` … if it is taken (tables V5).
  public static func free(_ name: String, taken: Set<String>) -> String {
    var candidate = name
    var number = 2
    while taken.contains(candidate) {
      candidate = "\(name)_\(number)"
      number += 1
    }
    return candidate
  }

  /// Whether a name that came from elsewhere could have been given to a column: it collides with no field of Cairn's or
  /// of the server's.
  public static func isValid(column name: String) -> Bool { isValid(name, maximumLength, reservedColumns) }

  /// Whether a name that came from elsewhere could have been given to a table.
  public static func isValid(table name: String) -> Bool { isValid(name, maximumTableLength, reservedTables) }

  private static func isValid(_ name: String, _ limit: Int, _ reserved: Set<String>) -> Bool {
    guard let first = name.utf8.first, first >= UInt8(ascii: "a"), first <= UInt8(ascii: "z") else { return false }
    let isPlain = name.utf8.allSatisfy { byte in
      (byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z"))
        || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
        || byte == UInt8(ascii: "_")
    }
    return isPlain && name.utf8.count <= limit && !name.hasPrefix("cairn_") && !reserved.contains(name)
  }

  static func encode(_ name: String, reserved: Set<String>) -> String {
    var result: [UInt8] = []
    let bytes = Array(name.utf8)
    result.reserveCapacity(bytes.count + 8)
    for (i, byte) in bytes.enumerated() {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): result.append(byte | 0x20)
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): result.append(byte)
      case UInt8(ascii: "_"):
        let isFollowedByX = i + 1 < bytes.count && bytes[i + 1] | 0x20 == UInt8(ascii: "x")
        if isFollowedByX { escape(byte, &result) } else { result.append(byte) }
      default: escape(byte, &result)
      }
    }
    let text = String(decoding: result, as: UTF8.self)
    let startsWithLetter = result.first.map { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") } ?? false
    let needsPrefix =
      !startsWithLetter || text.hasPrefix("c_") || text.hasPrefix("cairn_") || reserved.contains(text)
    return needsPrefix ? "c_" + text : text
  }

  private static func escape(_ byte: UInt8, _ result: inout [UInt8]) {
    result.append(UInt8(ascii: "_"))
    result.append(UInt8(ascii: "x"))
    Hex.appendLower(byte, &result)
  }

  /// System fields of records.
  static let reservedColumns: Set<String> = [
    "recordid", "recordtype", "recordchangetag", "etag", "creationdate", "creatoruserrecordid", "modificationdate",
    "modifiedbydevice", "lastmodifieduserrecordid", "parent", "share", "encryptedvalues",
  ]

  /// Record types of the server and of other categories. The list is closed: every release names alike.
  static let reservedTables: Set<String> = [
    "users", "account", "accountmigrationmarker", "accounttombstone", "accountcontext",
  ]
}
