import CairnRecords
import CairnServerCore

/// What PostgreSQL, or libpq, says went wrong.
struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Five characters (SQLSTATE); empty where the connection could not be made or was lost.
  var state: String
  var message: String
  /// Whether a commit was under way: it may have happened.
  var isInDoubt = false

  var description: String { message }

  /// The connection can't be used any more.
  var isConnectionLoss: Bool {
    state.isEmpty || state.hasPrefix("08") || ["57P01", "57P02", "57P03", "25006", "25P03"].contains(state)
  }

  /// The transaction was undone because of another one, and may succeed when it is run again: a failure to serialize, a
  /// deadlock, a row that another one has added since this one found it missing.
  var isConflict: Bool { ["40001", "40P01", "55P03", "23505", "0A000"].contains(state) }

  static let conflict = PostgresError(state: "40001", message: "Another transaction came first")

  /// Whether only the operator can help.
  var isRefusal: Bool { state.hasPrefix("28") || state.hasPrefix("3D") || state.hasPrefix("42501") }

  /// In the words of ``Storage``.
  var failure: StorageFailure {
    if isInDoubt {
      return StorageFailure(
        "The connection to the store was lost during a commit, which may have happened", isTemporary: true)
    }
    if isConnectionLoss { return StorageFailure("The store is away (\(message))", isTemporary: true) }
    if isConflict { return StorageFailure("The store is busy (\(message))", isTemporary: true) }
    // Full disk, out of memory, too many connections; a statement that took longer than its server allows.
    return StorageFailure(
      "PostgreSQL: \(message) (\(state))", isTemporary: state.hasPrefix("53") || state == "57014" || state == "57P05")
  }

  /// Any error of the store's in those words.
  static func failure(_ error: any Error) -> any Error {
    switch error {
    case let error as PostgresError where error.state == "54000":
      CloudError(.badRequest, "A name in the request is too long")
    case let error as PostgresError where error.state == "22021":
      CloudError(.badRequest, "A name in the request holds a character that can't be stored")
    case let error as PostgresError: error.failure
    case is DatabaseIsGone: StorageFailure("The database does not exist any more", isTemporary: true)
    default: error
    }
  }
}
