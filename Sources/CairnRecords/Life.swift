/// What a device holds of a record when a fetched deletion or record meets it (tables M5, policy `latest`).
public enum LocalLife: Hashable, Sendable {
  /// Alive, everything confirmed.
  case clean(touch: FieldClock)
  /// Alive with an edit, insert or reinsert that the server has not confirmed.
  case unsent(touch: FieldClock)
  /// Deleted here at this clock; the delete may or may not have been confirmed.
  case dead(FieldClock)
}

/// What becomes of a record when its end is fetched.
public enum DeletionVerdict: Hashable, Sendable {
  /// The row goes; the record is known as deleted at this clock.
  case remove(at: FieldClock)
  /// The row stays and is sent again as a new record; its life clock is raised to the given one where it has to be.
  case reassert(life: FieldClock?)
  /// Both agree that it is dead.
  case bothDead
}

/// The life rule for a fetched deletion: the later of last edit and delete wins, equal clocks keep the row; with an
/// unknown time an unsent local edit wins (tables M5).
///
/// - Parameters:
///   - deleteClock: the time of the delete; nil where the server does not report it.
///   - now: wall clock in ms, used only for a revival against a delete of unknown time.
public func verdict(on local: LocalLife, deletedAt deleteClock: FieldClock?, now: FieldClock) -> DeletionVerdict {
  switch local {
  case .dead:
    return .bothDead
  case .clean(let touch):
    guard let deleteClock else { return .remove(at: touch + 1) }
    return touch < deleteClock ? .remove(at: deleteClock) : .reassert(life: nil)
  case .unsent(let touch):
    guard let deleteClock else { return .reassert(life: max(now, touch + 1)) }
    return touch < deleteClock ? .remove(at: deleteClock) : .reassert(life: nil)
  }
}

/// Whether a record fetched alive, with greatest clock `touch`, comes back over a delete made here (tables M5).
public func revives(touch: FieldClock, overDeleteAt deleteClock: FieldClock) -> Bool { touch >= deleteClock }
