import CSQLite

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// One call of an SQL function that this program defines. Of use only while the call lasts.
public struct FunctionCall {
  fileprivate let context: OpaquePointer?
  fileprivate let arguments: UnsafeMutablePointer<OpaquePointer?>

  // MARK: Arguments, from 0

  public func storageClass(_ argument: Int) -> StorageClass {
    StorageClass(rawValue: sqlite3_value_type(arguments[argument])) ?? .null
  }

  public func integer(_ argument: Int) -> Int64 { sqlite3_value_int64(arguments[argument]) }

  public func real(_ argument: Int) -> Double { sqlite3_value_double(arguments[argument]) }

  /// How the bytes of a TEXT, as UTF-8, or BLOB stand to others in SQLite's binary collation: less than 0 before, 0 the
  /// same, greater than 0 after.
  public func compare(_ argument: Int, _ other: UnsafeRawBufferPointer) -> Int {
    let value = arguments[argument]
    // Text of a UTF-16 file is made UTF-8 first, where it counts its bytes then.
    let base =
      storageClass(argument) == .text
      ? sqlite3_value_text(value).map { UnsafeRawPointer($0) } : sqlite3_value_blob(value)
    let count = base == nil ? 0 : Int(sqlite3_value_bytes(value))
    let common = min(count, other.count)
    guard common > 0, let base, let start = other.baseAddress else { return count - other.count }
    let difference = memcmp(base, start, common)
    return difference == 0 ? count - other.count : Int(difference)
  }

  // MARK: The result, NULL where none is given

  public func give(_ integer: Int64) { sqlite3_result_int64(context, integer) }

  /// Ends the statement with an error.
  public func fail(_ message: String) { sqlite3_result_error(context, message, -1) }

  /// Gives a copy of bytes as TEXT.
  public func give(text bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in
        guard let base = text.baseAddress else { return cairn_sqlite3_result_text_transient(context, "", 0) }
        cairn_sqlite3_result_text_transient(context, base, Int32(clamping: text.count))
      }
    }
  }
}

extension Connection {
  /// Defines a function that statements of this connection may call, and nothing in the file's schema may.
  ///
  /// - Parameter body: called on the thread that runs the statement; must not use the connection. It lives as long as
  ///   the connection, which it must not keep.
  public func define(
    _ name: String, arguments: Int32, _ body: @escaping (FunctionCall) -> Void
  ) throws(SQLiteError) {
    // SQLite owns the box from here on, also when it refuses the function.
    let box = Unmanaged.passRetained(FunctionBox(body)).toOpaque()
    let code = sqlite3_create_function_v2(
      handle, name, arguments, SQLITE_UTF8 | SQLITE_DIRECTONLY, box,
      { context, _, arguments in
        guard let arguments, let box = sqlite3_user_data(context) else { return }
        Unmanaged<FunctionBox>.fromOpaque(box)._withUnsafeGuaranteedRef {
          $0.body(FunctionCall(context: context, arguments: arguments))
        }
      }, nil, nil,
      { box in
        if let box { Unmanaged<FunctionBox>.fromOpaque(box).release() }
      })
    guard code == SQLITE_OK else { throw SQLiteError(handle, code: code, sql: name) }
  }
}

private final class FunctionBox {
  let body: (FunctionCall) -> Void
  init(_ body: @escaping (FunctionCall) -> Void) { self.body = body }
}
