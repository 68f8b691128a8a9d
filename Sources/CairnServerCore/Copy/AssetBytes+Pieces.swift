#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

extension AssetBytes {
  /// Calls `body` with the bytes, a piece at a time, and closes a file.
  func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    switch self {
    case .memory(let bytes): try bytes.withUnsafeBytes { try body($0) }
    case .file(let descriptor, _):
      defer { close(descriptor) }
      var buffer = [UInt8](repeating: 0, count: 256 << 10)
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw StorageFailure("An asset can't be read (\(String(cString: strerror(errno))))") }
        if count == 0 { return }
        try buffer.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      }
    }
  }
}
