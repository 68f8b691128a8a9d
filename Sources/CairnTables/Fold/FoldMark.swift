import CairnSQLite

/// How far a stretch of the log is folded that is not folded in the order of the log (``SortedStretch``).
struct FoldMark {
  /// Id of the last entry of the stretch.
  var through: Int64
  /// Id of the entry that was folded last.
  var last: Int64

  init(through: Int64, last: Int64) {
    self.through = through
    self.last = last
  }

  /// Nil where no fold was cut off.
  init?(_ settings: FileSettings) throws {
    guard let text = try settings.get(.foldMark) else { return nil }
    let numbers = text.split(separator: " ").compactMap { Int64($0) }
    guard numbers.count == 2 else {
      throw TablesError.damagedMetadata("cairn_setting has a mark of the fold that is none: \(text)")
    }
    (through, last) = (numbers[0], numbers[1])
  }

  func write(_ settings: FileSettings) throws { try settings.set(.foldMark, "\(through) \(last)") }

  /// Called whenever the entries that it speaks of are gone.
  static func remove(_ settings: FileSettings) throws { try settings.set(.foldMark, nil) }
}
