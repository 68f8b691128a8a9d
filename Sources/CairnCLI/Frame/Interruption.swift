import Foundation
import Synchronization

/// SIGINT (ctrl-C) and SIGTERM: ends a command cleanly.
///
/// The first signal runs the handlers, on a thread of its own; the second ends the process at once. While no handler
/// is set, a signal does what it does by default. Children that the process starts have the default behaviour.
final class Interruption: Sendable {
  private struct State {
    var handlers: [Int: @Sendable () -> Void] = [:]
    var next = 0
    var isInterrupted = false
  }

  private let state = Mutex(State())

  /// One that no signal reaches; tests call ``interrupt()`` on it.
  init() {}

  /// Whether a signal has come while a handler was set.
  var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

  /// Runs `body` with `handler` set. The handler must make `body` return soon; it runs on another thread, at most once.
  func whileHandling<Result>(_ handler: @escaping @Sendable () -> Void, _ body: () throws -> Result) rethrows -> Result
  {
    let id = state.withLock { state in
      state.next += 1
      state.handlers[state.next] = handler
      return state.next
    }
    defer { state.withLock { $0.handlers[id] = nil } }
    return try body()
  }

  /// Returns whether somebody handles it.
  @discardableResult
  func interrupt() -> Bool {
    let handlers = state.withLock { state in
      guard !state.isInterrupted, !state.handlers.isEmpty else { return [Int: @Sendable () -> Void]() }
      state.isInterrupted = true
      return state.handlers
    }
    for key in handlers.keys.sorted(by: >) { handlers[key]?() }
    return !handlers.isEmpty
  }

  // MARK: Signals

  /// The pipe from the signal handler to the thread that acts. Set once, before the handler is installed.
  private static let pipe: [Int32] = {
    var ends: [Int32] = [-1, -1]
    guard systemPipe(&ends) == 0 else { return [-1, -1] }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
  }()

  /// An interruption that the process's signals reach. Call once, at the start.
  static func installed() -> Interruption {
    let interruption = Interruption()
    guard pipe[0] >= 0 else { return interruption }
    let thread = Thread {
      var number: UInt8 = 0
      while read(pipe[0], &number, 1) == 1 {
        if !interruption.interrupt() { endProcess(by: Int32(number)) }
      }
    }
    thread.name = "cairn-signals"
    thread.start()
    for number in [SIGINT, SIGTERM] {
      signal(number) { number in
        // Only calls that are safe in a signal handler.
        let saved = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(Interruption.pipe[1], &byte, 1)
        errno = saved
      }
    }
    return interruption
  }

  /// Ends the process as the signal does by default, so that a shell sees why.
  private static func endProcess(by number: Int32) {
    signal(number, SIG_DFL)
    kill(getpid(), number)
  }
}

private func systemPipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }
