import Foundation

/// How long tests wait for what another thread or process has to do before they say that it does not do it.
///
/// This is no speed: what happens at all is seen within milliseconds of its happening. It is long, because a test
/// shares its machine with other tests, and with who knows what else.
public enum Patience {
  public static let seconds = 90
  public static let limit = Duration.seconds(seconds)
}

/// Whether a condition comes to hold within ``Patience/limit``.
public func eventually(_ condition: () throws -> Bool) rethrows -> Bool { try timeUntil(condition) != nil }

/// How long it takes until a condition holds; nil when it does not within ``Patience/limit``.
public func timeUntil(_ condition: () throws -> Bool) rethrows -> Duration? {
  let start = ContinuousClock.now
  while true {
    if try condition() { return ContinuousClock.now - start }
    if ContinuousClock.now - start > Patience.limit { return nil }
    // The state of another thread or process has no event to wait for here; the condition and its limit are above.
    usleep(2_000)
  }
}
