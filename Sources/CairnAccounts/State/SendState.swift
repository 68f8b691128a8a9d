import CairnEngine
import CairnRecords

/// How a fact stands with the server: what the outbox knows of it (accounts.md A80).
///
/// Invariants:
/// 1. `isPending` falls only by a confirmation of the same revision, or when nothing is left to send.
/// 2. `wasHandedOver` never falls: once a save may have left, the server may hold the record (accounts.md A30).
struct SendState: Hashable, Sendable, Codable {
  /// The tag of the last confirmed version of the record under the name that this release writes.
  var tag: String?
  /// A save result for exactly this record, or the record seen in a fetch, in this incarnation of the zone.
  var isConfirmed = false
  var isPending = false
  var revision: Int64 = 0
  /// The record was handed to the engine or seen on the server: others may know it.
  var wasHandedOver = false
  var reason: String?
  /// ms since 1970.
  var retryAt: Int64?
  /// Waits for a new revision or a request of the user.
  var needsUser = false

  static let new = SendState(isPending: true, revision: 1)

  /// A local change.
  mutating func touch() {
    isPending = true
    revision += 1
    if needsUser { (reason, needsUser) = (nil, false) }
  }

  /// Seen in a fetch, or as the server's copy in a conflict.
  mutating func saw(_ tag: ChangeTag?) {
    isConfirmed = true
    wasHandedOver = true
    if let tag { self.tag = tag.rawValue }
  }

  mutating func clearWait() { (reason, retryAt, needsUser) = (nil, nil, false) }

  /// Nothing is left to send.
  mutating func rest() {
    isPending = false
    clearWait()
  }

  /// A new incarnation of the zone: tags and confirmations are of the old one (accounts.md A83).
  mutating func forgetServer() {
    (tag, isConfirmed) = (nil, false)
    clearWait()
  }

  mutating func wait(_ reason: PendingReason, until time: Int64?, needsUser: Bool) {
    self.reason = reason == .unsent ? nil : reason.rawValue
    retryAt = time
    self.needsUser = needsUser
  }

  var changeTag: ChangeTag? { tag.map { ChangeTag($0) } }

  /// Whether it may be tried in a batch.
  func mayGo(isManual: Bool, now: Int64) -> Bool {
    isPending && (isManual || (!needsUser && (retryAt ?? 0) <= now))
  }

  /// Whether it waits for nothing but to be sent.
  func isReady(_ now: Int64) -> Bool {
    isPending && !needsUser && (retryAt ?? 0) <= now && (reason == nil || retryAt != nil)
  }
}
