import Synchronization

/// The web auth token of the calls of one user, which the server may replace with every answer
/// (web-services section 3).
///
/// Databases that share it do their calls one at a time: a token that serves one round trip can't serve two at once.
final class WebAuthToken: Sendable {
  private let turn = Mutex(())
  private let value: Mutex<String>

  init(_ value: String) { self.value = Mutex(value) }

  /// The token of the next call.
  var current: String { value.withLock { $0 } }

  /// Takes over the token that an answer brought.
  ///
  /// - Returns: whether it is another than before.
  func replace(with next: String) -> Bool {
    value.withLock { value in
      guard !next.isEmpty, next != value else { return false }
      value = next
      return true
    }
  }

  /// Runs one call, when the calls before it have ended.
  func inTurn<Result, Failure>(
    _ call: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try turn.withLock { _ throws(Failure) in try call() }
  }
}
