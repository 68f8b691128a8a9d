import CairnSQLite

/// Which values of a row go into assets (tables 1.5).
public enum LargeValues {
  /// A TEXT or BLOB above this many bytes always does.
  public static let valueLimit = 64 << 10
  /// The largest values do until the record is below this many bytes.
  public static let recordLimit = 900 << 10

  /// The columns whose values must become assets, ascending.
  ///
  /// - Parameter others: bytes of the record that are not in `content`'s columns.
  public static func columns(_ content: RecordContent, _ plan: TablePlan, others: Int = 4096) -> [Int] {
    var chosen: [Int] = []
    var left: [(size: Int, column: Int)] = []
    var total = others
    for (i, value) in content.values.enumerated() where content.clocks[i] != RecordContent.never {
      guard case .value(let value) = value else { continue }
      switch value {
      case .text(let text): note(i, text.utf8.count, size: text.utf8.count)
      case .malformedText(let bytes), .blob(let bytes): note(i, bytes.count, size: (bytes.count + 2) / 3 * 4)
      default: total += 24
      }
    }
    func note(_ column: Int, _ bytes: Int, size: Int) {
      if bytes > valueLimit {
        chosen.append(column)
      } else {
        left.append((size, column))
        total += size
      }
    }
    // Of equal sizes the first columns stay, so that every device chooses alike.
    left.sort { ($0.size, $0.column) < ($1.size, $1.column) }
    while total >= recordLimit, let largest = left.popLast() {
      chosen.append(largest.column)
      total -= largest.size
    }
    return chosen.sorted()
  }
}
