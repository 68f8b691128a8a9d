import CPostgres

/// What one statement has answered, in binary form.
final class PostgresRows {
  private let result: OpaquePointer

  init(_ result: OpaquePointer) { self.result = result }

  deinit { PQclear(result) }

  var count: Int { Int(PQntuples(result)) }
  var isEmpty: Bool { count == 0 }

  /// How many rows an INSERT, UPDATE or DELETE has changed.
  var changes: Int { PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

  func isNull(_ row: Int, _ column: Int) -> Bool { PQgetisnull(result, Int32(row), Int32(column)) != 0 }

  func integer(_ row: Int, _ column: Int) -> Int64 {
    let bytes = buffer(row, column)
    // Counts are bigint, other integers may be narrower.
    guard let first = bytes.first else { return 0 }
    var value: Int64 = first & 0x80 != 0 ? -1 : 0
    for byte in bytes { value = value << 8 | Int64(byte) }
    return value
  }

  func optionalInteger(_ row: Int, _ column: Int) -> Int64? { isNull(row, column) ? nil : integer(row, column) }

  func text(_ row: Int, _ column: Int) -> String { String(decoding: buffer(row, column), as: UTF8.self) }

  func optionalText(_ row: Int, _ column: Int) -> String? { isNull(row, column) ? nil : text(row, column) }

  func bytes(_ row: Int, _ column: Int) -> [UInt8] { Array(buffer(row, column)) }

  func optionalBytes(_ row: Int, _ column: Int) -> [UInt8]? { isNull(row, column) ? nil : bytes(row, column) }

  /// Good while this object lives.
  private func buffer(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: PQgetvalue(result, Int32(row), Int32(column)), count: Int(PQgetlength(result, Int32(row), Int32(column))))
  }
}
