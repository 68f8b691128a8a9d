import CairnClient
import Foundation
import Synchronization

/// Listens, on a thread of its own, for what other devices store while a file is watched.
///
/// ```
/// no server yet ──use()──▶ connecting ──address──▶ listening ──hint──▶ listening
///                            ▲   └─ not offered: asks again after ten minutes
///                            └──── error: after 1, 2, 4 … 60 s; the watch asks the server every second meanwhile
/// ```
///
/// Whoever begins to listen has missed what came before: that is a hint too.
final class WatchNews: Sendable {
  /// Seconds.
  private static let firstWait = 1.0
  private static let longestWait = 60.0
  private static let notOffered = 600.0

  private struct State {
    var database: WebServicesDatabase?
    var listener: ChangeListener?
    var isListening = false
    var hasHint = false
    var isStopped = false
  }

  private let state = Mutex(State())
  private let wakeUp = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let heard: @Sendable () -> Void

  /// - Parameter heard: called with every hint, on the listening thread.
  init(_ heard: @escaping @Sendable () -> Void) { self.heard = heard }

  /// The watch talks to this from now on.
  func use(_ database: WebServicesDatabase) {
    let older = state.withLock { state in
      state.database = database
      return state.listener
    }
    older?.cancel()
    wakeUp.signal()
  }

  /// Whether hints come.
  var isListening: Bool { state.withLock { $0.isListening } }

  /// Whether there was a hint since the last call.
  func takeHint() -> Bool {
    state.withLock { state in
      defer { state.hasHint = false }
      return state.hasHint
    }
  }

  func start() { Thread.detachNewThread { self.listen() } }

  /// Ends the listening; returns when the thread has ended, or after two seconds.
  func stop() {
    let listener = state.withLock { state in
      state.isStopped = true
      return state.listener
    }
    listener?.cancel()
    wakeUp.signal()
    _ = ended.wait(timeout: .now() + 2)
  }

  // MARK: The thread

  private func listen() {
    defer { ended.signal() }
    var wait = Self.firstWait
    while !isStopped {
      guard let listener = makeListener() else {
        // The first answer of the server says what it is: that is not long after the first round.
        _ = wakeUp.wait(timeout: .now() + 0.2)
        continue
      }
      var pause = wait
      do {
        if let address = try listener.connect() {
          wait = Self.firstWait
          pause = wait
          setListening(true)
          hint()
          while true { if try listener.wait(at: address) { hint() } }
        }
        pause = Self.notOffered
      } catch {
        // Whatever it is: the watch asks by itself until listening works again.
        wait = min(wait * 2, Self.longestWait)
      }
      setListening(false)
      if !isStopped { _ = wakeUp.wait(timeout: .now() + pause) }
    }
  }

  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func makeListener() -> ChangeListener? {
    state.withLock { state in
      guard !state.isStopped, let database = state.database else { return nil }
      state.listener = ChangeListener(besides: database)
      return state.listener
    }
  }

  private func setListening(_ isListening: Bool) { state.withLock { $0.isListening = isListening } }

  private func hint() {
    state.withLock { $0.hasHint = true }
    heard()
  }
}
