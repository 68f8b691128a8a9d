import CairnRecords
import CairnSQLite

/// What is left to do for a table whose schema has changed.
///
/// Stored in the transaction that renews the table's triggers and removed in the one that ends the work, so that a
/// crash in between loses none of it: the next open goes on. Every part can be done twice.
struct UpkeepTask: Hashable, Sendable {
  enum Kind: String, Hashable, Sendable, CaseIterable {
    /// Columns were added (tables T26, V2).
    case columns
    /// Triggers were missing (tables T29).
    case gap
    /// The table is synced for the first time (tables 1.1, V4).
    case new
  }

  private static let prefix = "upkeep/"

  var table: Int
  var kind: Kind
  /// Wall clock of the open that found the change.
  var time: FieldClock
  /// Wire names of columns that records may have no or kept values of.
  var columns: Set<String>

  /// One work that does what both ask for.
  func joined(with older: UpkeepTask?) -> UpkeepTask {
    guard let older else { return self }
    var joined = self
    let order = Kind.allCases
    if let mine = order.firstIndex(of: kind), let theirs = order.firstIndex(of: older.kind), theirs > mine {
      joined.kind = older.kind
    }
    joined.time = min(time, older.time)
    joined.columns.formUnion(older.columns)
    return joined
  }

  // MARK: Storing

  static func all(_ settings: FileSettings) throws -> [UpkeepTask] {
    try settings.all(prefix: prefix).sorted { $0.key < $1.key }.compactMap { key, text in
      let words = text.split(separator: " ").map(String.init)
      guard let table = Int(key.dropFirst(prefix.count)), words.count >= 2, let kind = Kind(rawValue: words[0]),
        let time = FieldClock(words[1])
      else { return nil }
      return UpkeepTask(table: table, kind: kind, time: time, columns: Set(words.dropFirst(2)))
    }
  }

  func store(_ settings: FileSettings) throws {
    let words = [kind.rawValue, String(time)] + columns.sorted()
    try settings.set(Self.prefix + String(table), words.joined(separator: " "))
  }

  func remove(_ settings: FileSettings) throws { try settings.set(Self.prefix + String(table), nil) }
}
