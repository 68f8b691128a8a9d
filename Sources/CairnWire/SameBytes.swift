#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

extension UnsafeBufferPointer<UInt8> {
  /// Whether the bytes from `place` on, of which there are enough, are these.
  @inline(__always)
  func areSame(asAt place: UnsafePointer<UInt8>) -> Bool {
    guard let baseAddress else { return true }
    return memcmp(baseAddress, place, count) == 0
  }
}
