#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The wall clock of the server core. Injected, so that tests set it (DESIGN G9).
public protocol ServerClock: Sendable {
  /// Milliseconds since 1970.
  var now: Int64 { get }
}

/// The source of the server's random names (epochs, incarnations, users, records without a name).
public protocol ServerRandomness: AnyObject, Sendable {
  func next() -> UInt64
}

/// The machine's clock.
public struct SystemServerClock: ServerClock {
  public init() {}

  public var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

/// The operating system's random numbers, fit for secrets.
public final class SystemServerRandomness: ServerRandomness {
  public init() {}

  public func next() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

extension ServerRandomness {
  /// An upper-case UUID, the name of a record that came without one (web-services section 5).
  func recordName() -> String {
    let hex = Array((hexadecimal(next()) + hexadecimal(next())).uppercased())
    return [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]].map { String($0) }.joined(separator: "-")
  }

  /// `_` and 32 hex digits (web-services section 6).
  func userRecordName() -> String { "_" + hexadecimal(next()) + hexadecimal(next()) }
}

/// 16 hex digits.
private func hexadecimal(_ value: UInt64) -> String {
  let digits = String(value, radix: 16)
  return String(repeating: "0", count: 16 - digits.count) + digits
}
