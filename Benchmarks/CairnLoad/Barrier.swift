import Foundation
import Synchronization

/// Where a number of threads wait for each other.
final class Barrier: Sendable {
  private struct State {
    var members: Int
    var arrived = 0
    var round = 0
    var isAgreed = true
    var answer = true
    var left = 0
  }

  private let state: Mutex<State>
  private let condition = NSCondition()
  private let count: Int

  init(_ count: Int) {
    self.count = count
    state = Mutex(State(members: count))
  }

  /// Waits until all members are here.
  func wait() { _ = agree(true) }

  /// Waits for all, and tells whether all of them said yes.
  func agree(_ yes: Bool) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    let round = state.withLock { state in
      state.isAgreed = state.isAgreed && yes
      state.arrived += 1
      return state.round
    }
    endRound()
    while state.withLock({ $0.round == round }) { condition.wait() }
    return state.withLock { $0.answer }
  }

  /// A member that comes no more.
  func leave() {
    condition.lock()
    defer { condition.unlock() }
    state.withLock {
      $0.members -= 1
      $0.left += 1
    }
    endRound()
    condition.broadcast()
  }

  func waitUntilAllLeft() {
    condition.lock()
    defer { condition.unlock() }
    while state.withLock({ $0.left < count }) { condition.wait() }
  }

  /// The condition's lock is held.
  private func endRound() {
    let isComplete = state.withLock { state in
      guard state.members > 0, state.arrived >= state.members else { return false }
      state.answer = state.isAgreed
      state.isAgreed = true
      state.arrived = 0
      state.round += 1
      return true
    }
    if isComplete { condition.broadcast() }
  }
}
