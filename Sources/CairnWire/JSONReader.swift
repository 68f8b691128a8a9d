import CairnRecords

/// A strict pull reader of JSON over bytes that the caller keeps alive.
///
/// Nothing is built but what the caller asks for: keys are compared in place, and values that nobody wants are
/// skipped, though checked. The grammar is RFC 8259's: no comments, no trailing commas, no NaN, no lone surrogates, no
/// control characters in strings. UTF-8 is checked once for the whole body, before reading begins. Of two equal keys
/// the later wins, because callers assign.
///
/// Positions are `UnsafePointer`s: every read is preceded by a comparison with `end`, and a reader is only handed out
/// inside ``parse(_:limits:_:)-(UnsafeBufferPointer<UInt8>,_,_)``, where the bytes live.
public struct JSONReader {
  /// What the next value is, by its first byte.
  public enum Kind: Sendable { case object, array, string, number, bool, null }

  let start: UnsafePointer<UInt8>
  let end: UnsafePointer<UInt8>
  var position: UnsafePointer<UInt8>
  /// Whether an object or array was just opened: no comma may come.
  var isFirst = false
  var depth = 0
  /// The last zone ID that was read, and its text.
  var repeatedZone: (bytes: UnsafeBufferPointer<UInt8>, zone: ZoneID)?
  /// The last user that was read, and its text: records of a page have few.
  var repeatedUser: (bytes: UnsafeBufferPointer<UInt8>, name: String)?
  let maximalDepth: Int

  init(start: UnsafePointer<UInt8>, count: Int, maximalDepth: Int) {
    self.start = start
    self.position = start
    self.end = start + count
    self.maximalDepth = maximalDepth
  }

  /// Reads one JSON text. Fails if anything but white space follows it, or if `body` leaves a part unread.
  public static func parse<Value>(
    _ bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits = JSONLimits(),
    _ body: (inout JSONReader) throws(WireError) -> Value
  ) throws(WireError) -> Value {
    guard bytes.count <= limits.bytes else {
      throw WireError(.limit, "the body is larger than \(limits.bytes) bytes", at: 0)
    }
    guard let base = bytes.baseAddress, !bytes.isEmpty else { throw WireError(.truncated, "the body is empty", at: 0) }
    if let bad = UTF8Check.firstInvalidByte(bytes) { throw WireError(.encoding, "the body is not UTF-8", at: bad) }
    var reader = JSONReader(start: base, count: bytes.count, maximalDepth: limits.depth)
    let value = try body(&reader)
    reader.skipWhitespace()
    guard reader.position == reader.end else { throw reader.error(.syntax, "something follows the JSON text") }
    return value
  }

  /// ``parse(_:limits:_:)-(UnsafeBufferPointer<UInt8>,_,_)`` over an array.
  public static func parse<Value>(
    _ bytes: [UInt8], limits: JSONLimits = JSONLimits(), _ body: (inout JSONReader) throws(WireError) -> Value
  ) throws(WireError) -> Value {
    try bytes.withUnsafeBufferPointer { (buffer) throws(WireError) -> Value in
      try parse(buffer, limits: limits, body)
    }
  }

  func error(_ kind: WireError.Kind, _ reason: String) -> WireError {
    WireError(kind, reason, at: position - start)
  }

  @inline(__always)
  mutating func skipWhitespace() {
    while position < end {
      let byte = position.pointee
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
      position += 1
    }
  }

  /// The kind of the next value, which stays unread.
  public mutating func kind() throws(WireError) -> Kind {
    skipWhitespace()
    guard position < end else { throw error(.truncated, "the body ends where a value should be") }
    switch position.pointee {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
    case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
    case UInt8(ascii: "n"): return .null
    default: throw error(.syntax, "no JSON value begins here")
    }
  }

  // MARK: Containers

  /// Enters an object. Call ``nextKey()`` until it returns nil, and read or skip one value after each key.
  public mutating func beginObject() throws(WireError) {
    guard try kind() == .object else { throw error(.value, "an object is expected") }
    try enter()
  }

  /// Enters an array. Call ``nextElement()`` until it returns false, and read or skip one value after each true.
  public mutating func beginArray() throws(WireError) {
    guard try kind() == .array else { throw error(.value, "an array is expected") }
    try enter()
  }

  private mutating func enter() throws(WireError) {
    guard depth < maximalDepth else { throw error(.limit, "the body is nested more than \(maximalDepth) deep") }
    depth += 1
    position += 1
    isFirst = true
  }

  /// The next key of the object, or nil at its end.
  @inline(__always)
  public mutating func nextKey() throws(WireError) -> JSONKey? {
    guard try advance(closing: UInt8(ascii: "}")) else { return nil }
    guard position < end, position.pointee == UInt8(ascii: "\"") else { throw error(.syntax, "a key is expected") }
    let key = try rawString()
    skipWhitespace()
    guard position < end else { throw error(.truncated, "the body ends after a key") }
    guard position.pointee == UInt8(ascii: ":") else { throw error(.syntax, "a colon is expected") }
    position += 1
    return key
  }

  /// Whether the array has another element.
  @inline(__always)
  public mutating func nextElement() throws(WireError) -> Bool {
    try advance(closing: UInt8(ascii: "]"))
  }

  private mutating func advance(closing: UInt8) throws(WireError) -> Bool {
    skipWhitespace()
    guard position < end else { throw error(.truncated, "the body ends inside an object or array") }
    let byte = position.pointee
    if byte == closing {
      position += 1
      depth -= 1
      isFirst = false
      return false
    }
    if isFirst {
      isFirst = false
      return true
    }
    guard byte == UInt8(ascii: ",") else { throw error(.syntax, "a comma is expected") }
    position += 1
    skipWhitespace()
    guard position < end else { throw error(.truncated, "the body ends after a comma") }
    guard position.pointee != closing else { throw error(.syntax, "a comma before the end") }
    return true
  }

  // MARK: Words

  /// Consumes a null, if one is next.
  public mutating func readNull() throws(WireError) -> Bool {
    guard try kind() == .null else { return false }
    try word("null")
    return true
  }

  public mutating func readBool() throws(WireError) -> Bool {
    guard try kind() == .bool else { throw error(.value, "true or false is expected") }
    if position.pointee == UInt8(ascii: "t") {
      try word("true")
      return true
    }
    try word("false")
    return false
  }

  private mutating func word(_ text: StaticString) throws(WireError) {
    let count = text.utf8CodeUnitCount
    guard end - position >= count else { throw error(.truncated, "the body ends inside a word") }
    for i in 0..<count where position[i] != text.utf8Start[i] { throw error(.syntax, "no JSON value begins here") }
    position += count
  }

  // MARK: Skipping

  /// Reads and checks the next value without building it.
  public mutating func skip() throws(WireError) {
    switch try kind() {
    case .object:
      try beginObject()
      while try nextKey() != nil { try skip() }
    case .array:
      try beginArray()
      while try nextElement() { try skip() }
    case .string: _ = try rawString()
    case .number: _ = try number()
    case .bool: _ = try readBool()
    case .null: _ = try readNull()
    }
  }
}

/// Bounds of what a reader takes.
public struct JSONLimits: Hashable, Sendable {
  /// Nesting of objects and arrays.
  public var depth: Int
  /// Size of the whole text.
  public var bytes: Int

  public init(depth: Int = 64, bytes: Int = 256 << 20) {
    self.depth = depth
    self.bytes = bytes
  }
}
