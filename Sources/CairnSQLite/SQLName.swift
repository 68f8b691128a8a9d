/// Names in SQL: comparing and quoting.
public enum SQLName {
  /// The name with ASCII letters in lower case, as SQLite compares names.
  public static func folded(_ name: String) -> String {
    guard name.utf8.contains(where: { $0 >= 0x41 && $0 <= 0x5A }) else { return name }
    return String(decoding: name.utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  public static func equal(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    return zip(a.utf8, b.utf8).allSatisfy { folded($0) == folded($1) }
  }

  @inline(__always)
  private static func folded(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

  /// The name in double quotes, for use in a statement.
  public static func quoted(_ name: String) -> String { quote(name, "\"") }

  /// The text as a string literal.
  public static func literal(_ text: String) -> String { quote(text, "'") }

  private static func quote(_ text: String, _ mark: Character) -> String {
    var result = String(mark)
    for character in text.unicodeScalars {
      result.unicodeScalars.append(character)
      if character == mark.unicodeScalars.first { result.unicodeScalars.append(character) }
    }
    result.append(mark)
    return result
  }
}
