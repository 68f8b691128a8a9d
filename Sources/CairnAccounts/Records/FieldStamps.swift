import CairnWire

/// The field `fieldStamps`: JSON, field name → `[time, writer]`, keys in order (accounts.md section 2).
enum FieldStamps {
  static func encode(_ stamps: [String: Stamp]) -> [UInt8] {
    let members = stamps.sorted { $0.key < $1.key }.map {
      JSONMember($0.key, .array([.integer($0.value.time), .string($0.value.writer)]))
    }
    return JSONValue.object(members).encoded
  }

  /// Nil where the bytes are not in this form, or a time is none.
  static func decode(_ bytes: [UInt8]) -> [String: Stamp]? {
    let value: JSONValue
    do { value = try JSONValue(parsing: bytes) } catch { return nil }
    guard case .object(let members) = value else { return nil }
    var stamps: [String: Stamp] = [:]
    for member in members {
      guard case .array(let parts) = member.value, parts.count == 2, let time = integer(parts[0]),
        let writer = parts[1].string, StampClock.isValid(time)
      else { return nil }
      stamps[member.key] = Stamp(time: time, writer: writer)
    }
    return stamps
  }

  private static func integer(_ value: JSONValue) -> Int64? {
    if case .integer(let number) = value { number } else { nil }
  }
}
