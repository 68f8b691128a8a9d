import CairnSQLite

/// Names of capture triggers: `cairn_<table number>_<what>`. They tell a renamed table's number after SQLite has
/// rewritten everything else (tables T27).
public enum CaptureTriggerName {
  public static func make(table number: Int, _ what: String) -> String { "cairn_\(number)_\(what)" }

  /// The table number in a trigger's name; nil for a name that ``make(table:_:)`` does not give.
  public static func tableNumber(_ name: String) -> Int? {
    let name = SQLName.folded(name)
    guard name.hasPrefix("cairn_") else { return nil }
    let digits = name.dropFirst(6).prefix { $0.isASCII && $0.isNumber }
    return name.dropFirst(6 + digits.count).hasPrefix("_") ? Int(digits) : nil
  }
}
