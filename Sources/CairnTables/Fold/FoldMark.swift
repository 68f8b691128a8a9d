import CairnSQLite

/// How far a stretch of the log is folded that is not folded in the order of the log (``SortedStretch``).
struct FoldMark: Equatable {
  /// The last entry of the stretch in the log.
  var through: LogPlace
  /// Id of the entry that was folded last.
  var folded: Int64

  init(through: LogPlace, folded: Int64) {
    self.through = through
    self.folded = folded
  }

  /// Nil where no fold was cut off.
  init?(_ settings: FileSettings) throws {
    guard let text = try settings.get(.foldMark) else { return nil }
    let words = text.split(separator: " ")
    guard words.count == 4, let id = Int64(words[0]), let event = Int64(words[1]), let time = UInt64(words[2]),
      let folded = Int64(words[3])
    else { throw TablesError.damagedMetadata("cairn_setting has a mark of the fold that is none: \(text)") }
    self.init(through: LogPlace(id: id, event: event, time: time), folded: folded)
  }

  func write(_ settings: FileSettings) throws {
    try settings.set(.foldMark, "\(through.id) \(through.event) \(through.time) \(folded)")
  }

  /// Called whenever the entries that it speaks of are gone.
  static func remove(_ settings: FileSettings) throws { try settings.set(.foldMark, nil) }
}

/// One entry of the log, told from another that has got its id since: ids begin again when the log was emptied.
struct LogPlace: Equatable {
  var id: Int64
  var event: Int64
  /// The bits of the entry's time.
  var time: UInt64

  init(id: Int64, event: Int64, time: UInt64) {
    self.id = id
    self.event = event
    self.time = time
  }

  /// The entry at which a statement over whole entries stands.
  init(_ statement: Statement) {
    self.init(id: statement.integer(0), event: statement.integer(1), time: statement.real(2).bitPattern)
  }

  /// Nil where the log has no entry of that id.
  init?(_ id: Int64, _ file: FileContext) throws {
    let statement = try file.connection.cached("SELECT id, event, time FROM cairn_log WHERE id = ?1")
    defer { statement.reset() }
    try statement.bind(1, id)
    guard try statement.step() else { return nil }
    self.init(statement)
  }

  var table: Int { Int(event >> 15) }
}
