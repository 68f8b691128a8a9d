#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Writes JSON into one growing byte buffer.
///
/// Commas come by themselves: a value or key that does not follow `{`, `[` or `:` is preceded by one. Nothing checks
/// that every key has its value; the codecs of this module do, by their tests. The memory comes from `malloc`, so that
/// it can be handed to C with ``release()``.
public struct JSONWriter: ~Copyable {
  private(set) var base: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  /// Bytes written so far.
  public private(set) var count = 0
  /// Where the last zone ID of an answer stands, to be copied while the zone stays the same.
  var repeatedZone: RepeatedZone?

  public init(capacity: Int = 4096) {
    self.capacity = max(capacity, 64)
    base = Self.grow(nil, to: self.capacity)
  }

  deinit { free(base) }

  private static func grow(_ old: UnsafeMutablePointer<UInt8>?, to capacity: Int) -> UnsafeMutablePointer<UInt8> {
    guard let memory = realloc(old, capacity) else { preconditionFailure("out of memory") }
    return memory.assumingMemoryBound(to: UInt8.self)
  }

  // MARK: Results

  /// A copy of what was written.
  public var bytes: [UInt8] { [UInt8](UnsafeBufferPointer(start: base, count: count)) }

  /// Lends what was written.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeBufferPointer(start: base, count: count))
  }

  /// Gives the memory away; the receiver frees it with C's `free`.
  public consuming func release() -> UnsafeMutableBufferPointer<UInt8> {
    let result = UnsafeMutableBufferPointer(start: base, count: count)
    // The deinit frees this in its place; `discard self` is not allowed beside members that need destroying.
    base = Self.grow(nil, to: 1)
    return result
  }

  /// Drops what was written after the first `count` bytes, for an entry that turned out too large.
  public mutating func truncate(to count: Int) {
    precondition(count <= self.count)
    self.count = count
    repeatedZone = nil
  }

  /// Forgets what was written and keeps the memory.
  public mutating func reset() { truncate(to: 0) }

  // MARK: Raw bytes

  /// Makes room for `more` bytes and returns where they go; `commit` says how many were used.
  @inline(__always)
  mutating func reserve(_ more: Int) -> UnsafeMutablePointer<UInt8> {
    if capacity - count < more {
      capacity = max(capacity * 2, count + more)
      base = Self.grow(base, to: capacity)
    }
    return base + count
  }

  @inline(__always)
  mutating func commit(_ used: Int) { count += used }

  @inline(__always)
  mutating func byte(_ byte: UInt8) {
    reserve(1).pointee = byte
    commit(1)
  }

  @inline(__always)
  mutating func copy(_ source: UnsafePointer<UInt8>, _ length: Int) {
    reserve(length).update(from: source, count: length)
    commit(length)
  }

  /// Writes text that is JSON already, as it is: no comma, no escapes.
  @inline(__always)
  mutating func literal(_ text: StaticString) { copy(text.utf8Start, text.utf8CodeUnitCount) }

  /// Writes a value that was encoded before.
  public mutating func encodedValue(_ json: UnsafeBufferPointer<UInt8>) {
    separate()
    if let source = json.baseAddress { copy(source, json.count) }
  }

  /// ``encodedValue(_:)-(UnsafeBufferPointer<UInt8>)`` over an array.
  public mutating func encodedValue(_ json: [UInt8]) {
    separate()
    json.withUnsafeBufferPointer { if let source = $0.baseAddress { copy(source, $0.count) } }
  }

  /// Writes a comma if something stands before.
  @inline(__always)
  mutating func separate() {
    guard count > 0 else { return }
    switch base[count - 1] {
    case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): return
    default: byte(UInt8(ascii: ","))
    }
  }

  // MARK: Structure

  public mutating func beginObject() {
    separate()
    byte(UInt8(ascii: "{"))
  }

  public mutating func endObject() { byte(UInt8(ascii: "}")) }

  public mutating func beginArray() {
    separate()
    byte(UInt8(ascii: "["))
  }

  public mutating func endArray() { byte(UInt8(ascii: "]")) }

  /// Writes a key that needs no escapes.
  @inline(__always)
  public mutating func key(_ name: StaticString) {
    separate()
    byte(UInt8(ascii: "\""))
    literal(name)
    literal("\":")
  }

  public mutating func key(_ name: String) {
    string(name)
    byte(UInt8(ascii: ":"))
  }

  // MARK: Words and pairs

  public mutating func null() {
    separate()
    literal("null")
  }

  public mutating func bool(_ value: Bool) {
    separate()
    if value { literal("true") } else { literal("false") }
  }

  /// Writes a string that needs no escapes.
  public mutating func string(_ text: StaticString) {
    separate()
    byte(UInt8(ascii: "\""))
    literal(text)
    byte(UInt8(ascii: "\""))
  }

  public mutating func pair(_ name: StaticString, _ value: String) {
    key(name)
    string(value)
  }

  public mutating func pair(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }

  public mutating func pair(_ name: StaticString, _ value: Int64) {
    key(name)
    int64(value)
  }

  public mutating func pair(_ name: StaticString, _ value: Double) {
    key(name)
    double(value)
  }

  public mutating func pair(_ name: StaticString, _ values: [String]) {
    key(name)
    beginArray()
    for value in values { string(value) }
    endArray()
  }
}
