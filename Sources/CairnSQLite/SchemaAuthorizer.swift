import CSQLite

/// What a statement is about to do, as SQLite asks while it compiles it.
public struct AuthorizerRequest: Hashable, Sendable {
  public enum Action: Hashable, Sendable {
    case createTable, createIndex, reindex, insert, update, delete, read, select, function
    /// Any other action, by SQLite's code.
    case other(Int32)
  }

  public var action: Action
  /// Mostly the name of a table or index.
  public var first: String?
  /// Mostly the name of a column, function or table.
  public var second: String?
  /// The name of the database, such as `main`.
  public var database: String?
}

extension Connection {
  /// Runs `body` while `allows` decides what statements may be compiled. A refused one fails with `SQLITE_AUTH` (23).
  ///
  /// Any authorizer that was set before is gone afterwards.
  public func authorizing<Result>(
    _ allows: (AuthorizerRequest) -> Bool, _ body: () throws -> Result
  ) throws -> Result {
    try withoutActuallyEscaping(allows) { escaping in
      let box = AuthorizerBox(escaping)
      return try withExtendedLifetime(box) {
        sqlite3_set_authorizer(handle, authorizerCallback, Unmanaged.passUnretained(box).toOpaque())
        defer { sqlite3_set_authorizer(handle, nil, nil) }
        return try body()
      }
    }
  }
}

private final class AuthorizerBox {
  let allows: (AuthorizerRequest) -> Bool
  init(_ allows: @escaping (AuthorizerRequest) -> Bool) { self.allows = allows }
}

private func authorizerCallback(
  _ context: UnsafeMutableRawPointer?, _ code: Int32, _ first: UnsafePointer<CChar>?,
  _ second: UnsafePointer<CChar>?, _ database: UnsafePointer<CChar>?, _ source: UnsafePointer<CChar>?
) -> Int32 {
  guard let context else { return SQLITE_DENY }
  let box = Unmanaged<AuthorizerBox>.fromOpaque(context).takeUnretainedValue()
  let action: AuthorizerRequest.Action =
    switch code {
    case SQLITE_CREATE_TABLE: .createTable
    case SQLITE_CREATE_INDEX: .createIndex
    case SQLITE_REINDEX: .reindex
    case SQLITE_INSERT: .insert
    case SQLITE_UPDATE: .update
    case SQLITE_DELETE: .delete
    case SQLITE_READ: .read
    case SQLITE_SELECT: .select
    case SQLITE_FUNCTION: .function
    default: .other(code)
    }
  let request = AuthorizerRequest(
    action: action, first: first.map { String(cString: $0) }, second: second.map { String(cString: $0) },
    database: database.map { String(cString: $0) })
  return box.allows(request) ? SQLITE_OK : SQLITE_DENY
}
