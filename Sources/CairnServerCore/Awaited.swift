import Foundation

/// A value that one thread waits for and another sets, once.
final class Awaited<Value: Sendable>: @unchecked Sendable {
  // `value` is guarded by `condition`.
  private let condition = NSCondition()
  private var value: Value?

  func set(_ value: Value) {
    condition.lock()
    self.value = value
    condition.signal()
    condition.unlock()
  }

  func wait() -> Value {
    condition.lock()
    defer { condition.unlock() }
    while true {
      if let value { return value }
      condition.wait()
    }
  }
}
