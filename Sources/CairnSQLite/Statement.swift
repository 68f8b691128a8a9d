import CSQLite

/// A compiled statement. Parameters are numbered from 1, columns from 0, as in SQLite.
public final class Statement {
  let handle: OpaquePointer
  // SQLite keeps a closed connection until its last statement is finalized, so this outlives `Connection` where need
  // be.
  private let database: OpaquePointer
  public let sql: String

  init(_ connection: Connection, _ sql: String) throws(SQLiteError) {
    database = connection.handle
    self.sql = sql
    try Self.checkText(sql)
    var text = sql
    let (code, prepared, hasMore) = text.withUTF8 { Self.compile($0, connection.handle) }
    guard code == SQLITE_OK else { throw SQLiteError(connection.handle, code: code, sql: sql) }
    guard let prepared, !hasMore else {
      sqlite3_finalize(prepared)
      throw SQLiteError(
        extendedCode: SQLITE_MISUSE, message: prepared == nil ? "empty statement" : "more than one statement", sql: sql)
    }
    handle = prepared
  }

  /// SQLite reads a statement up to its first NUL and would run a part of it.
  static func checkText(_ sql: String) throws(SQLiteError) {
    guard !sql.utf8.contains(0) else {
      throw SQLiteError(extendedCode: SQLITE_MISUSE, message: "NUL in a statement", sql: sql)
    }
  }

  /// Compiles the first statement and looks whether another one, or something that is none, follows it.
  private static func compile(
    _ sql: UnsafeBufferPointer<UInt8>, _ database: OpaquePointer
  ) -> (code: Int32, statement: OpaquePointer?, hasMore: Bool) {
    sql.withMemoryRebound(to: CChar.self) { text in
      guard let start = text.baseAddress, !text.isEmpty else { return (SQLITE_OK, nil, false) }
      guard text.count < Int32.max else { return (SQLITE_TOOBIG, nil, false) }
      var prepared: OpaquePointer?
      var tail: UnsafePointer<CChar>?
      let length = Int32(text.count)
      let code = sqlite3_prepare_v3(database, start, length, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, &tail)
      guard code == SQLITE_OK, let tail, tail - start < text.count else { return (code, prepared, false) }
      var next: OpaquePointer?
      let nextCode = sqlite3_prepare_v3(database, tail, length - Int32(tail - start), 0, &next, nil)
      sqlite3_finalize(next)
      return (code, prepared, nextCode != SQLITE_OK || next != nil)
    }
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Running

  /// Moves to the next row. Returns false, and resets the statement, when there is none.
  public func step() throws(SQLiteError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    guard code == SQLITE_DONE else {
      let error = SQLiteError(database, code: code, sql: sql)
      sqlite3_reset(handle)
      throw error
    }
    sqlite3_reset(handle)
    return false
  }

  /// Runs the statement to its end, with the parameters that are bound.
  public func run() throws(SQLiteError) {
    while try step() {}
  }

  /// Binds `values` from the first parameter on and runs the statement to its end.
  public func run(_ values: [Value]) throws(SQLiteError) {
    try bind(values)
    try run()
  }

  /// Makes the statement ready to run again and sets every parameter to NULL.
  public func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  // MARK: Binding

  /// Binds `values` from the first parameter on. Parameters beyond them keep what they have; `SQLITE_RANGE` where there
  /// are more values than parameters.
  public func bind(_ values: [Value]) throws(SQLiteError) {
    var index: Int32 = 1
    for value in values {
      try bind(index, value)
      index += 1
    }
  }

  public func bind(_ index: Int32, _ value: Value) throws(SQLiteError) {
    switch value {
    case .null: try bindNull(index)
    case .integer(let integer): try bind(index, integer)
    case .real(let real): try bind(index, real)
    case .text(let text): try bind(index, text)
    case .malformedText(let bytes): try bindText(index, bytes)
    case .blob(let bytes): try bind(index, bytes)
    }
  }

  public func bindNull(_ index: Int32) throws(SQLiteError) {
    try check(sqlite3_bind_null(handle, index))
  }

  public func bind(_ index: Int32, _ value: Int64) throws(SQLiteError) {
    try check(sqlite3_bind_int64(handle, index, value))
  }

  /// NaN is bound as NULL: SQLite has no NaN.
  public func bind(_ index: Int32, _ value: Double) throws(SQLiteError) {
    try check(sqlite3_bind_double(handle, index, value))
  }

  public func bind(_ index: Int32, _ value: String) throws(SQLiteError) {
    var value = value
    try checkSize(value.utf8.count)
    let code = value.withUTF8 { bytes in
      guard let base = bytes.baseAddress else { return cairn_sqlite3_bind_text_static(handle, index, "", 0) }
      return base.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
        cairn_sqlite3_bind_text_transient(handle, index, $0, Int32(bytes.count))
      }
    }
    try check(code)
  }

  /// Binds bytes as TEXT, valid UTF-8 or not.
  public func bindText(_ index: Int32, _ bytes: [UInt8]) throws(SQLiteError) {
    try bytes.withUnsafeBufferPointer { (bytes) throws(SQLiteError) in try bindText(index, bytes) }
  }

  /// Binds a copy of bytes as TEXT, valid UTF-8 or not.
  public func bindText(_ index: Int32, _ bytes: UnsafeBufferPointer<UInt8>) throws(SQLiteError) {
    try checkSize(bytes.count)
    let code = bytes.withMemoryRebound(to: CChar.self) { text in
      guard let base = text.baseAddress else { return cairn_sqlite3_bind_text_static(handle, index, "", 0) }
      return cairn_sqlite3_bind_text_transient(handle, index, base, Int32(text.count))
    }
    try check(code)
  }

  /// Binds bytes as BLOB.
  public func bind(_ index: Int32, _ bytes: [UInt8]) throws(SQLiteError) {
    try checkSize(bytes.count)
    let code = bytes.withUnsafeBytes { raw in
      // A null pointer would bind NULL: the empty blob needs a pointer of its own.
      guard let base = raw.baseAddress else { return sqlite3_bind_zeroblob(handle, index, 0) }
      return cairn_sqlite3_bind_blob_transient(handle, index, base, Int32(raw.count))
    }
    try check(code)
  }

  /// SQLite counts bytes in 32 bits.
  private func checkSize(_ count: Int) throws(SQLiteError) {
    guard count <= Int32.max else {
      throw SQLiteError(extendedCode: SQLITE_TOOBIG, message: "string or blob too big", sql: sql)
    }
  }

  /// The largest parameter number of the statement.
  public var parameterCount: Int { Int(sqlite3_bind_parameter_count(handle)) }

  private func check(_ code: Int32) throws(SQLiteError) {
    guard code == SQLITE_OK else { throw SQLiteError(database, code: code, sql: sql) }
  }

  // MARK: Columns

  public var columnCount: Int { Int(sqlite3_column_count(handle)) }

  public var row: [Value] { (0..<Int32(columnCount)).map { value($0) } }

  public func storageClass(_ column: Int32) -> StorageClass {
    StorageClass(rawValue: sqlite3_column_type(handle, column)) ?? .null
  }

  public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  public func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

  /// The column as text; malformed UTF-8 is repaired. Use ``value(_:)`` where bytes matter.
  public func text(_ column: Int32) -> String {
    withText(column) { String(decoding: $0, as: UTF8.self) }
  }

  public func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

  public func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

  public func blob(_ column: Int32) -> [UInt8] {
    withBlob(column) { [UInt8]($0) }
  }

  /// The bytes of a text column, valid until the next step or reset.
  public func withText<Result>(_ column: Int32, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    let base = sqlite3_column_text(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return body(UnsafeBufferPointer(start: base, count: base == nil ? 0 : count))
  }

  /// The bytes of a blob column, valid until the next step or reset.
  public func withBlob<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let base = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return body(UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : count))
  }

  /// The column with its storage class and every byte.
  public func value(_ column: Int32) -> Value {
    switch sqlite3_column_type(handle, column) {
    case SQLITE_INTEGER: .integer(integer(column))
    case SQLITE_FLOAT: .real(real(column))
    case SQLITE_TEXT: withText(column) { Value(textBytes: $0) }
    case SQLITE_BLOB: .blob(blob(column))
    default: .null
    }
  }
}
