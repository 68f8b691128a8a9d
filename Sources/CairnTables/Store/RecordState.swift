/// What of a record still has to reach the server (tables 3.2).
enum PendingChange: Int64, Hashable, Sendable {
  case none = 0
  case save = 1
  case delete = 2
}

/// Whether a record's row was deleted, and perhaps put back, without the server knowing (tables 3.2).
enum LifeStatus: Int64, Hashable, Sendable {
  case none = 0
  case deleted = 1
  case reinserted = 2
}

/// Facts about a record that are kept in one integer beside its life status.
struct RecordFlags: OptionSet, Hashable, Sendable {
  let rawValue: Int64
  /// A revision of the record was once in a batch: the server may know it (tables F7).
  static let attempted = RecordFlags(rawValue: 1)
  /// Fields were cut off in a merge: the next save must be a replace (tables U2).
  static let replaces = RecordFlags(rawValue: 2)
  /// The record's row is not in the table: a version of it waits in the inbox as parked (tables M10, M11).
  static let parked = RecordFlags(rawValue: 4)
}

/// Which fields of a record with a pending save the server has not confirmed.
enum DirtyFields: Hashable, Sendable {
  /// Every field: the record is new or reinserted.
  case all
  /// The named fields only: wire names, ascending, each once. Mostly one, so a set would cost more than it saves.
  case some([String])

  static let none = DirtyFields.some([])

  init(_ names: Set<String>) { self = .some(names.sorted()) }

  func contains(_ name: String) -> Bool {
    switch self {
    case .all: true
    case .some(let names): names.contains(name)
    }
  }

  mutating func insert(_ name: String) {
    guard case .some(var names) = self, !names.contains(name) else { return }
    names.insert(name, at: names.firstIndex { $0 > name } ?? names.count)
    self = .some(names)
  }
}
