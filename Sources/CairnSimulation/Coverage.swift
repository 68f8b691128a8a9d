/// Counts how often rare situations came up, so that a simulation which no longer meets them is noticed.
public struct Coverage: Hashable, Sendable {
  /// A situation that runs should meet.
  public enum Mark: String, Hashable, Sendable, CaseIterable {
    // What programs do.
    case statementRefused, rolledBack, reinserted, keyChanged, voidDelete, programDuringRequest
    // What the network and the server do.
    case lostRequest, lostAnswer, duplicatedRequest, throttled, busy, expiredToken, quota, tokenRefused
    case serverRestarted, serverRestored, zoneDeleted
    // What happens to a device.
    case crashed, storageFailed, restarted, clockJumped, copied, columnAdded
    // What sync has to do because of it.
    case conflict, removedByFetch, parkedUnique, parkedMissingParent, parked, mergeLoss, replaceSent
    case createSent, conditionalDelete, decided, zoneRecreated
    /// A record that was deleted is created again.
    case revived
  }

  private var counts: [Mark: Int] = [:]

  public init() {}

  /// Counts a situation that came up.
  public mutating func note(_ mark: Mark, _ times: Int = 1) { if times > 0 { counts[mark, default: 0] += times } }

  /// How often a situation came up.
  public func count(_ mark: Mark) -> Int { counts[mark] ?? 0 }

  /// Situations that never came up, in the order of their declaration.
  public var missing: [Mark] { Mark.allCases.filter { count($0) == 0 } }

  /// Adds what another run has seen.
  public mutating func add(_ other: Coverage) { counts.merge(other.counts) { $0 + $1 } }
}
