/// A value that can decide a tie between two edits with the same clock (tables M2).
///
/// The order must be total and alike on every device; it has no meaning beyond that.
public protocol MergeOrdered: Equatable {
  static func precedes(_ a: Self, _ b: Self) -> Bool
}

/// Which of two versions of a field a merge keeps.
public enum MergeWinner: Hashable, Sendable {
  case local, remote
  /// Same clock, same value: nothing changes on either side.
  case equal
}

/// Decides one field: the greater clock wins, of equal clocks the greater value (tables M2).
///
/// A nil clock means that the side never set the field (tables M3). The values are asked for only on a tie.
@inlinable
public func mergeField<Value: MergeOrdered>(
  local: FieldClock?, remote: FieldClock?, localValue: @autoclosure () throws -> Value,
  remoteValue: @autoclosure () throws -> Value
) rethrows -> MergeWinner {
  guard let remote else { return local == nil ? .equal : .local }
  guard let local else { return .remote }
  if local != remote { return local > remote ? .local : .remote }
  let ours = try localValue()
  let theirs = try remoteValue()
  if ours == theirs { return .equal }
  return Value.precedes(ours, theirs) ? .remote : .local
}

/// A field's value and the time of its last edit.
public struct StampedField<Value: MergeOrdered>: Equatable {
  public var clock: FieldClock
  public var value: Value

  public init(clock: FieldClock, value: Value) {
    self.clock = clock
    self.value = value
  }
}

extension StampedField: Sendable where Value: Sendable {}

/// What merges of a record that is alive: its life, its cut and its fields with their clocks (tables 1.4).
///
/// ``merged(with:)`` is commutative, associative and idempotent, so that every device reaches the same record in
/// whatever order versions travel (DESIGN G4).
public struct RecordVersion<Value: MergeOrdered>: Equatable {
  /// Clock of the insert, reinsert or revival that made the record alive.
  public var life: FieldClock
  /// Clock of the delete before the present life. Fields at or below it belong to the dead row.
  public var cut: FieldClock?
  public var fields: [String: StampedField<Value>]

  public init(life: FieldClock, cut: FieldClock? = nil, fields: [String: StampedField<Value>]) {
    self.life = life
    self.cut = cut
    self.fields = fields
    dropFieldsOfTheDead()
  }

  /// The greatest clock of the record.
  public var touch: FieldClock { fields.values.reduce(life) { max($0, $1.clock) } }

  /// What every device makes of both versions: commutative, associative, idempotent (DESIGN G4).
  public func merged(with other: RecordVersion) -> RecordVersion {
    var result = self
    result.life = max(life, other.life)
    result.cut = maximum(cut, other.cut)
    for (name, theirs) in other.fields {
      guard let ours = fields[name] else {
        result.fields[name] = theirs
        continue
      }
      let winner = mergeField(
        local: ours.clock, remote: theirs.clock, localValue: ours.value, remoteValue: theirs.value)
      if winner == .remote { result.fields[name] = theirs }
    }
    result.dropFieldsOfTheDead()
    return result
  }

  private mutating func dropFieldsOfTheDead() {
    guard let cut else { return }
    fields = fields.filter { $0.value.clock > cut }
  }
}

extension RecordVersion: Sendable where Value: Sendable {}

/// The greater of two clocks of which either may be absent.
@inlinable
public func maximum(_ a: FieldClock?, _ b: FieldClock?) -> FieldClock? {
  guard let a else { return b }
  guard let b else { return a }
  return max(a, b)
}
