/// Names in SQL: comparing and quoting.
public enum SQLName {
  /// The name with ASCII letters in lower case, as SQLite compares names.
  public static func folded(_ name: String) -> String {
    guard name.utf8.contains(where: { $0 >= 0x41 && $0 <= 0x5A }) else { return name }
    return String(decoding: name.utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  public static func equal(_ a: String, _ b: String) -> Bool {
    a.utf8.elementsEqual(b.utf8) || folded(a).utf8.elementsEqual(folded(b).utf8)
  }

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
