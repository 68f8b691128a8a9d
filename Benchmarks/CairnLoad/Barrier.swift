import Foundation

/// Where a number of threads wait for each other.
final class Barrier: @unchecked Sendable {
  // Everything below is guarded by `condition`.
  private let condition = NSCondition()
  private var members: Int
  private var arrived = 0
  private var round = 0
  /// Whether all who have come in this round said yes; and the answer of the last round.
  private var isAgreed = true
  private var answer = true

  init(_ count: Int) { members = count }

  /// Waits until all members are here.
  func wait() { _ = agree(true) }

  /// Waits for all, and tells whether all of them said yes.
  func agree(_ yes: Bool) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    isAgreed = isAgreed && yes
    arrived += 1
    let own = round
    endRound()
    while round == own { condition.wait() }
    return answer
  }

  /// A member that comes no more.
  func leave() {
    condition.lock()
    defer { condition.unlock() }
    members -= 1
    endRound()
    condition.broadcast()
  }

  func waitUntilAllLeft() {
    condition.lock()
    defer { condition.unlock() }
    while members > 0 { condition.wait() }
  }

  private func endRound() {
    guard members > 0, arrived >= members else { return }
    answer = isAgreed
    isAgreed = true
    arrived = 0
    round += 1
    condition.broadcast()
  }
}
