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
  func recordName() -> String { uuid().uppercased() }

  /// A lower-case UUID of version 4.
  public func uuid() -> String {
    let high = next() & ~0xf000 | 0x4000
    let low = next() & ~(3 << 62) | 1 << 63
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: 36) { out in
      var place = 0
      for nibble in 0..<32 {
        if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
          out[place] = UInt8(ascii: "-")
          place += 1
        }
        let word = nibble < 16 ? high : low
        out[place] = digits.utf8Start[Int(word >> UInt64(60 - nibble % 16 * 4) & 15)]
        place += 1
      }
      return place
    }
  }

  /// `_` and 32 hex digits (web-services section 6).
  func userRecordName() -> String { "_" + hexadecimal(next()) + hexadecimal(next()) }
}

/// 16 hex digits.
private func hexadecimal(_ value: UInt64) -> String {
  let digits = String(value, radix: 16)
  return String(repeating: "0", count: 16 - digits.count) + digits
}
