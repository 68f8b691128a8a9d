import CSQLite

/// A compiled statement. Parameters are numbered from 1, columns from 0, as in SQLite.
public final class Statement {
  let handle: OpaquePointer
  // Keeps the connection open for as long as the statement lives; cached statements must not keep it alive.
  private unowned let connection: Connection
  public let sql: String

  init(_ connection: Connection, _ sql: String) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else {
      throw code == SQLITE_OK
        ? SQLiteError(extendedCode: SQLITE_MISUSE, message: "empty statement", sql: sql)
        : SQLiteError(connection.handle, code: code, sql: sql)
    }
    handle = prepared
    self.connection = connection
    self.sql = sql
  }

  deinit { sqlite3_finalize(handle) }

  // MARK: Running

  /// Moves to the next row. Returns false, and resets the statement, when there is none.
  public func step() throws(SQLiteError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    guard code == SQLITE_DONE else {
      let error = SQLiteError(connection.handle, code: code, sql: sql)
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

  public func bind(_ index: Int32, _ value: Double) throws(SQLiteError) {
    try check(sqlite3_bind_double(handle, index, value))
  }

  public func bind(_ index: Int32, _ value: String) throws(SQLiteError) {
    var value = value
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
    let code = bytes.withUnsafeBytes { raw in
      guard let base = raw.bindMemory(to: CChar.self).baseAddress else {
        return cairn_sqlite3_bind_text_static(handle, index, "", 0)
      }
      return cairn_sqlite3_bind_text_transient(handle, index, base, Int32(raw.count))
    }
    try check(code)
  }

  /// Binds bytes as BLOB.
  public func bind(_ index: Int32, _ bytes: [UInt8]) throws(SQLiteError) {
    let code = bytes.withUnsafeBytes { raw in
      // A null pointer would bind NULL: the empty blob needs a pointer of its own.
      guard let base = raw.baseAddress else { return sqlite3_bind_zeroblob(handle, index, 0) }
      return cairn_sqlite3_bind_blob_transient(handle, index, base, Int32(raw.count))
    }
    try check(code)
  }

  private func check(_ code: Int32) throws(SQLiteError) {
    guard code == SQLITE_OK else { throw SQLiteError(connection.handle, code: code, sql: sql) }
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
    case SQLITE_TEXT:
      withText(column) { bytes in
        if let text = String(validating: bytes, as: UTF8.self) { .text(text) } else { .malformedText([UInt8](bytes)) }
      }
    case SQLITE_BLOB: .blob(blob(column))
    default: .null
    }
  }
}
