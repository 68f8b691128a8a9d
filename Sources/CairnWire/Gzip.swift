import CZlib

/// Gzip of whole bodies (web-services sections 1 and 15).
public enum Gzip {
  /// Compresses. `level` 1 is fastest, 9 smallest; 1 costs about a third of 6 on JSON and is nearly as small.
  public static func compress(_ bytes: UnsafeBufferPointer<UInt8>, level: Int32 = 1) -> [UInt8]? {
    var stream = z_stream()
    guard cairn_deflate_init_gzip(&stream, level) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    guard let size = UInt32(exactly: bytes.count) else { return nil }
    let bound = Int(deflateBound(&stream, UInt(bytes.count)))
    var isComplete = false
    let result = [UInt8](unsafeUninitializedCapacity: bound) { out, used in
      // zlib reads through next_in only; its type lacks the const.
      stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
      stream.avail_in = size
      stream.next_out = out.baseAddress
      stream.avail_out = UInt32(bound)
      isComplete = deflate(&stream, Z_FINISH) == Z_STREAM_END
      used = isComplete ? bound - Int(stream.avail_out) : 0
    }
    return isComplete ? result : nil
  }

  /// ``compress(_:level:)-(UnsafeBufferPointer<UInt8>,_)`` over an array.
  public static func compress(_ bytes: [UInt8], level: Int32 = 1) -> [UInt8]? {
    bytes.withUnsafeBufferPointer { compress($0, level: level) }
  }

  /// Decompresses one gzip member, refusing more than `limit` bytes of output, broken or cut input, and anything after
  /// the member.
  public static func decompress(_ bytes: UnsafeBufferPointer<UInt8>, limit: Int) throws(WireError) -> [UInt8] {
    guard let size = UInt32(exactly: bytes.count), size > 0 else {
      throw WireError(.truncated, "the gzip body is empty or too large", at: 0)
    }
    var stream = z_stream()
    guard cairn_inflate_init_gzip(&stream) == Z_OK else { throw WireError(.limit, "no memory to decompress", at: 0) }
    defer { inflateEnd(&stream) }
    stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
    stream.avail_in = size
    var result: [UInt8] = []
    var room = min(limit + 1, max(4096, bytes.count * 4))
    while true {
      let chunk = room
      var status = Z_OK
      let part = [UInt8](unsafeUninitializedCapacity: chunk) { out, used in
        stream.next_out = out.baseAddress
        stream.avail_out = UInt32(chunk)
        status = inflate(&stream, Z_NO_FLUSH)
        used = chunk - Int(stream.avail_out)
      }
      if result.isEmpty { result = part } else { result += part }
      let offset = bytes.count - Int(stream.avail_in)
      guard result.count <= limit else {
        throw WireError(.limit, "the body is larger than \(limit) bytes when decompressed", at: offset)
      }
      switch status {
      case Z_STREAM_END:
        guard stream.avail_in == 0 else { throw WireError(.syntax, "something follows the gzip body", at: offset) }
        return result
      case Z_OK, Z_BUF_ERROR:
        guard stream.avail_in > 0 || stream.avail_out == 0 else {
          throw WireError(.truncated, "the gzip body is cut off", at: offset)
        }
      default: throw WireError(.encoding, "the body is not gzip", at: offset)
      }
      room = min(limit + 1 - result.count, max(65536, result.count))
    }
  }

  /// ``decompress(_:limit:)-(UnsafeBufferPointer<UInt8>,_)`` over an array.
  public static func decompress(_ bytes: [UInt8], limit: Int) throws(WireError) -> [UInt8] {
    try bytes.withUnsafeBufferPointer { (buffer) throws(WireError) -> [UInt8] in
      try decompress(buffer, limit: limit)
    }
  }
}
