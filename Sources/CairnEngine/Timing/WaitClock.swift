/// Waits that are stored by wall clock and measured by uptime (engine section 9): a wall clock that jumps neither
/// shortens nor stretches a wait in a running process, and one found in the store is clamped to the longest wait.
struct WaitClock: Hashable, Sendable {
  /// Uptime in ms, by stored key.
  private var deadlines: [String: Int64] = [:]

  /// Takes over a stored wait.
  mutating func load(_ key: String, until wall: Int64?, _ now: Moment, longest: Int64) {
    guard let wall else { return }
    deadlines[key] = now.uptime + min(max(wall - now.wall, 0), longest)
  }

  mutating func set(_ key: String, _ wait: Int64, _ now: Moment) { deadlines[key] = now.uptime + wait }

  mutating func clear(_ key: String) { deadlines[key] = nil }

  /// Milliseconds still to wait; nil when the wait is over.
  func remaining(_ key: String, _ now: Moment) -> Int64? {
    guard let deadline = deadlines[key], deadline > now.uptime else { return nil }
    return deadline - now.uptime
  }
}
