import CairnWire

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// One HTTP answer. Its body is memory from `malloc`, which whoever sends it takes over.
public final class HTTPResponse: @unchecked Sendable {
  // `body` is touched by one thread at a time: the one that made the response, then the one that sends it.
  public let status: Int
  public private(set) var headers: [(name: String, value: String)]
  private var body: UnsafeMutableBufferPointer<UInt8>
  /// A file that is sent in place of a body.
  private var file: (descriptor: Int32, size: UInt64)?

  public init(status: Int, headers: [(name: String, value: String)] = [], body: consuming JSONWriter) {
    self.status = status
    self.headers = headers
    self.body = body.release()
  }

  public init(status: Int, headers: [(name: String, value: String)] = [], copying bytes: [UInt8]) {
    self.status = status
    self.headers = headers
    body = HTTPResponse.copy(bytes)
  }

  /// Takes over an open file.
  init(status: Int, headers: [(name: String, value: String)] = [], file descriptor: Int32, size: Int64) {
    self.status = status
    self.headers = headers
    body = UnsafeMutableBufferPointer(start: nil, count: 0)
    file = (descriptor, UInt64(size))
  }

  deinit {
    free(body.baseAddress)
    if let file { close(file.descriptor) }
  }

  public func addHeader(_ name: String, _ value: String) { headers.append((name, value)) }

  public var bodyCount: Int { body.count }

  /// Gives the body away; the receiver frees it.
  func takeBody() -> UnsafeMutableBufferPointer<UInt8> {
    defer { body = UnsafeMutableBufferPointer(start: nil, count: 0) }
    return body
  }

  /// Gives the file away; the receiver closes it.
  func takeFile() -> (descriptor: Int32, size: UInt64)? {
    defer { file = nil }
    return file
  }

  /// A copy of the body, for tests and in-process callers.
  public var bytes: [UInt8] {
    guard let file else { return [UInt8](body) }
    return [UInt8](unsafeUninitializedCapacity: Int(file.size)) { buffer, count in
      count = max(0, pread(file.descriptor, buffer.baseAddress, buffer.count, 0))
    }
  }

  func hasHeader(_ name: String) -> Bool { headers.contains { $0.name == name } }

  /// Compresses the body, also a short one: whoever asks for gzip may count on it (web-services section 1).
  func compress() {
    guard !body.isEmpty, let packed = Gzip.compress(UnsafeBufferPointer(body)) else { return }
    free(body.baseAddress)
    body = HTTPResponse.copy(packed)
    headers.append(("Content-Encoding", "gzip"))
  }

  private static func copy(_ bytes: [UInt8]) -> UnsafeMutableBufferPointer<UInt8> {
    guard !bytes.isEmpty, let memory = malloc(bytes.count) else {
      return UnsafeMutableBufferPointer(start: nil, count: 0)
    }
    bytes.withUnsafeBytes { memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: $0.count) }
    return UnsafeMutableBufferPointer(start: memory.assumingMemoryBound(to: UInt8.self), count: bytes.count)
  }
}
