/// `cairn_record.state`: life status, flags and revision of a record in one integer.
struct StateBits {
  static let parked = RecordFlags.parked.rawValue << 2
  static let attempted = RecordFlags.attempted.rawValue << 2
  static let dead: Int64 = 32
  static let lifeMask: Int64 = 3
  /// What ``FreshStart`` keeps of a record that is sent again as a new one: a row that was put aside is not in its
  /// table.
  static let keptMask = lifeMask | parked
  static let revisionShift: Int64 = 6

  let rawValue: Int64

  init(_ rawValue: Int64) { self.rawValue = rawValue }

  init(_ row: RecordRow) {
    rawValue =
      row.life.rawValue | row.flags.rawValue << 2 | (row.isAlive ? 0 : Self.dead) | row.revision << Self.revisionShift
  }

  /// Bits 0 and 1.
  var life: LifeStatus { LifeStatus(rawValue: rawValue & Self.lifeMask) ?? .none }
  /// Bits 2 to 4.
  var flags: RecordFlags { RecordFlags(rawValue: rawValue >> 2 & 7) }
  /// Bit 5: no live row, and `clock` is that of the delete.
  var isDead: Bool { rawValue & Self.dead != 0 }
  /// The bits above.
  var revision: Int64 { rawValue >> Self.revisionShift }
}
