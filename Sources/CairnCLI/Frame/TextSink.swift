import Foundation
import Synchronization

/// Where a command's text goes: a file descriptor, or memory in tests.
protocol TextSink: Sendable {
  func write(_ text: String)
  /// Why writing failed, as an `errno`; nil while all is well.
  var failure: Int32? { get }
}

/// Writes to a file descriptor at once, without a buffer. Whole calls from several threads don't mix.
final class DescriptorSink: TextSink {
  private let descriptor: Int32
  private let state = Mutex<Int32?>(nil)

  init(descriptor: Int32) { self.descriptor = descriptor }

  var failure: Int32? { state.withLock { $0 } }

  func write(_ text: String) {
    state.withLock { failure in
      guard failure == nil else { return }
      var bytes = Array(text.utf8)[...]
      while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
          bytes = bytes.dropFirst(count)
        } else if errno != EINTR {
          failure = errno
          return
        }
      }
    }
  }
}

private func systemWrite(_ descriptor: Int32, _ base: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, base, count)
}

/// Keeps the text.
final class MemorySink: TextSink {
  private let storage = Mutex("")

  var failure: Int32? { nil }
  var text: String { storage.withLock { $0 } }
  func write(_ text: String) { storage.withLock { $0 += text } }
}
