import CairnRecords

/// Reads `{"9":["b","zy"],"20":["id"]}` without building anything, as long as it has just the form that devices write
/// (docs/internals/row-records.md).
struct ClockScan {
  /// The clocks that were met.
  private(set) var clocks: [FieldClock] = []
  private var position = 0

  /// - Parameters:
  ///   - names: of the table's fields, quoted, ascending bytewise.
  ///   - columns: of the names.
  ///   - result: clocks by column.
  /// - Returns: whether all of it was read.
  mutating func run(
    _ bytes: UnsafeBufferPointer<UInt8>, _ names: [[UInt8]], _ columns: [Int], _ result: inout [FieldClock]
  ) -> Bool {
    guard take(UInt8(ascii: "{"), bytes) else { return false }
    repeat {
      guard let clock = clock(bytes), clocks.last.map({ $0 < clock }) ?? true, take(UInt8(ascii: ":"), bytes),
        take(UInt8(ascii: "["), bytes)
      else { return false }
      clocks.append(clock)
      var next = 0
      repeat {
        while next < names.count, !take(names[next], bytes) { next += 1 }
        // Another table's field, or one that has a clock already.
        guard next < names.count, result[columns[next]] == RecordContent.never else { return false }
        result[columns[next]] = clock
      } while take(UInt8(ascii: ","), bytes)
      guard take(UInt8(ascii: "]"), bytes) else { return false }
    } while take(UInt8(ascii: ","), bytes)
    return take(UInt8(ascii: "}"), bytes) && position == bytes.count
  }

  private mutating func take(_ byte: UInt8, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard position < bytes.count, bytes[position] == byte else { return false }
    position += 1
    return true
  }

  private mutating func take(_ name: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count - position >= name.count else { return false }
    for (i, byte) in name.enumerated() where bytes[position + i] != byte { return false }
    position += name.count
    return true
  }

  /// A quoted number of at most 16 digits.
  private mutating func clock(_ bytes: UnsafeBufferPointer<UInt8>) -> FieldClock? {
    guard take(UInt8(ascii: "\""), bytes) else { return nil }
    var clock: FieldClock = 0
    let first = position
    while position < bytes.count, position - first < 16, bytes[position] >= UInt8(ascii: "0"),
      bytes[position] <= UInt8(ascii: "9")
    {
      clock = clock * 10 + FieldClock(bytes[position] - UInt8(ascii: "0"))
      position += 1
    }
    return position > first && take(UInt8(ascii: "\""), bytes) ? clock : nil
  }
}
