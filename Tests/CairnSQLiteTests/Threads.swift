import Foundation
import Synchronization

extension Thread {
  /// Runs `body` on a thread of its own: SQLite calls that block must not hold one of the cooperative pool's.
  static func detached(_ body: @escaping @Sendable () throws -> Void) -> RunningThread {
    let running = RunningThread()
    Thread { running.finish(Result { try body() }) }.start()
    return running
  }
}

/// A thread whose end can be waited for.
final class RunningThread: Sendable {
  private let result = Mutex<Result<Void, any Error>?>(nil)
  private let end = DispatchSemaphore(value: 0)

  func finish(_ value: Result<Void, any Error>) {
    result.withLock { $0 = value }
    end.signal()
  }

  func wait() throws {
    end.wait()
    try result.withLock { try $0?.get() }
  }
}

/// A flag that threads share.
final class Flag: Sendable {
  private let storage = Mutex(false)
  var value: Bool { storage.withLock { $0 } }
  func set() { storage.withLock { $0 = true } }
}
