import CairnRecords

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Is told of every answer, on the listener's threads. Must be quick.
protocol RequestObserver: AnyObject, Sendable {
  /// - Parameter bytes: of the body as it is sent; 0 for a file.
  func answered(_ visit: Visit, status: Int, code: CloudError.Code?, bytes: Int)
  /// A request that was not let through to the handler.
  func refused(_ uuid: String, status: Int, code: CloudError.Code)
}

final class NoObserver: RequestObserver {
  func answered(_ visit: Visit, status: Int, code: CloudError.Code?, bytes: Int) {}
  func refused(_ uuid: String, status: Int, code: CloudError.Code) {}
}

enum MonotonicClock {
  /// In ns, on a clock that nobody sets.
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
