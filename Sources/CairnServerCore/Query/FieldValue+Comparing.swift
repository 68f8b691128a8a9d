import CairnRecords

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// How queries compare values (web-services section 9).
extension FieldValue {
  /// Whether two values of one kind are the same to a query: numbers by value, text by bytes, references by target.
  ///
  /// - Parameter zone: where a reference without zone points.
  func matches(_ other: FieldValue, zone: String) -> Bool {
    switch (self, other) {
    case (.double(let a), .double(let b)), (.timestamp(let a), .timestamp(let b)): a == b
    case (.reference(let a), .reference(let b)):
      a.recordName == b.recordName && (a.zone?.name ?? zone) == (b.zone?.name ?? zone)
    case (.location(let a), .location(let b)): a.latitude == b.latitude && a.longitude == b.longitude
    case (.list(let a, let x), .list(let b, let y)):
      a == b && x.count == y.count && zip(x, y).allSatisfy { $0.matches($1, zone: zone) }
    default: self == other
    }
  }

  /// Less than 0, 0 or more than 0; nil for values that have no order. Text is ordered by its UTF-8 bytes.
  func compared(to other: FieldValue) -> Int? {
    switch (self, other) {
    case (.int64(let a), .int64(let b)): a < b ? -1 : a == b ? 0 : 1
    case (.double(let a), .double(let b)), (.timestamp(let a), .timestamp(let b)): a < b ? -1 : a == b ? 0 : 1
    case (.string(let a), .string(let b)): a.comparedBytes(to: b)
    default: nil
    }
  }
}

extension String {
  func comparedBytes(to other: String) -> Int {
    var (a, b) = (self, other)
    return a.withUTF8 { a in
      b.withUTF8 { b in
        let common = Swift.min(a.count, b.count)
        if common > 0, let x = a.baseAddress, let y = b.baseAddress {
          let order = memcmp(x, y, common)
          if order != 0 { return Int(order) }
        }
        return a.count - b.count
      }
    }
  }

  func beginsWithBytes(of prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

  /// The words of a text: runs of letters and digits, without case.
  var queryTokens: Set<String> {
    Set(lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init))
  }
}

extension Location {
  /// Metres along the surface of a sphere of the earth's mean radius.
  func distance(to other: Location) -> Double {
    let radians = Double.pi / 180
    let (a, b) = (latitude * radians, other.latitude * radians)
    let (x, y) = (sin((b - a) / 2), sin((other.longitude - longitude) * radians / 2))
    let h = x * x + cos(a) * cos(b) * y * y
    return 2 * 6_371_008.8 * asin(min(1, h.squareRoot()))
  }
}
