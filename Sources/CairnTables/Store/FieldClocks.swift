import CairnRecords

/// The clocks of one record: its life and cut, and one clock per field (tables 1.4).
struct FieldClocks: Hashable, Sendable {
  /// Stands for "never set" in ``columns``.
  static let never: FieldClock = -1

  /// Clock of the insert, reinsert or revival that made the record alive.
  var life: FieldClock
  /// Clock of the delete before the present life.
  var cut: FieldClock?
  /// By index of the table's columns; ``never`` for a field that no version has set, and for a mapped key.
  var columns: [FieldClock]
  /// Clocks of fields without a column here, by wire name.
  var kept: [String: FieldClock]

  init(life: FieldClock, cut: FieldClock? = nil, columns: [FieldClock], kept: [String: FieldClock] = [:]) {
    self.life = life
    self.cut = cut
    self.columns = columns
    self.kept = kept
  }

  /// One clock for the record and every field of it, as an insert gives (tables F3).
  init(uniform clock: FieldClock, cut: FieldClock? = nil, plan: TablePlan) {
    self.init(life: clock, cut: cut, columns: Array(repeating: clock, count: plan.columns.count))
    for column in columns.indices where !plan.isField(column) { columns[column] = FieldClocks.never }
  }

  /// The greatest clock of the record.
  var touch: FieldClock {
    var greatest = life
    for clock in columns where clock > greatest { greatest = clock }
    for clock in kept.values where clock > greatest { greatest = clock }
    return greatest
  }

  /// The clock of a column's field; nil when no version has set it.
  func clock(of column: Int) -> FieldClock? {
    columns[column] == FieldClocks.never ? nil : columns[column]
  }
}
