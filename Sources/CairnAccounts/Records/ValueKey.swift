import CairnRecords
import CairnWire

/// The total order of values that decides between equal stamps: alike on every device, without meaning beyond that.
enum ValueKey {
  static func bytes(_ value: FieldValue?) -> [UInt8] {
    switch value {
    case nil: return []
    case .string(let text)?: return [1] + Array(text.utf8)
    case let value?:
      var writer = JSONWriter(capacity: 64)
      writer.field(value, .client)
      return [2] + writer.bytes
    }
  }

  static func precedes(_ a: FieldValue?, _ b: FieldValue?) -> Bool { bytes(a).lexicographicallyPrecedes(bytes(b)) }

  static func same(_ a: FieldValue?, _ b: FieldValue?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (.string(let a)?, .string(let b)?): a.utf8.elementsEqual(b.utf8)
    case (.double(let a)?, .double(let b)?): a.bitPattern == b.bitPattern
    case (.int64(let a)?, .int64(let b)?): a == b
    default: bytes(a) == bytes(b)
    }
  }
}
