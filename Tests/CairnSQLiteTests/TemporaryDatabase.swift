import CairnSQLite
import Foundation
import Testing

/// A database file of its own for one test, removed with its journals.
final class TemporaryDatabase {
  let folder = NSTemporaryDirectory() + "cairn-sqlite-\(UUID())"
  var path: String { folder + "/test.db" }

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func open(_ mode: Connection.Mode = .create, busyTimeout: Int32 = 0) throws -> Connection {
    try Connection(path: path, mode: mode, busyTimeout: busyTimeout)
  }
}

/// A database in memory that has run `sql`.
func memory(_ sql: String = "") throws -> Connection {
  let connection = try Connection(path: ":memory:")
  try connection.execute(sql)
  return connection
}

/// The error of `body`; nil, and a failed expectation, when it throws none.
func sqliteError(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) -> SQLiteError? {
  #expect(throws: SQLiteError.self, sourceLocation: sourceLocation) { try body() }
}
