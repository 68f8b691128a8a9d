import CairnRecords
import Synchronization

/// Reads multipart/form-data as it comes in and hands on the bytes of one part (RFC 7578), keeping no more of it than a
/// boundary or a part's headers.
///
/// ```
/// preamble ──boundary──▶ headers ──empty line──▶ content ──boundary──▶ headers … ──boundary "--"──▶ end
/// ```
final class MultipartReader: Sendable {
  private enum Place { case preamble, headers, content, end }

  private struct State {
    var place = Place.preamble
    /// What has not been decided on: it may be the beginning of a boundary, or headers that are not whole.
    var held: [UInt8] = [13, 10]
    var isWanted = false
    var wasFound = false
  }

  private let name: String
  /// With the line break before it.
  private let boundary: [UInt8]
  private let state = Mutex(State())

  /// Bytes of one part's headers.
  private static let headerLimit = 8192

  /// Nil when the type is another than multipart/form-data.
  init?(contentType: String, part name: String) throws(CloudError) {
    let parameters = contentType.split(separator: ";")
    guard parameters.first?.lowercased() == "multipart/form-data" else { return nil }
    self.name = name
    for parameter in parameters.dropFirst() {
      let text = parameter.drop { $0 == " " }
      guard text.lowercased().hasPrefix("boundary=") else { continue }
      let value = text.dropFirst(9).filter { $0 != "\"" }
      guard (1...70).contains(value.utf8.count) else { break }
      boundary = Array("\r\n--\(value)".utf8)
      return
    }
    throw CloudError(.badRequest, "multipart/form-data needs a boundary of 1 to 70 characters")
  }

  /// Whether the part was there and ended.
  var isComplete: Bool { state.withLock { $0.wasFound && $0.place != .content } }

  /// Takes a part of the body; `emit` gets bytes of the part.
  func read(_ bytes: UnsafeRawBufferPointer, _ emit: (UnsafeRawBufferPointer) throws(CloudError) -> Void)
    throws(CloudError)
  {
    let failure: CloudError? = state.withLock { state in
      state.held.append(contentsOf: bytes)
      do throws(CloudError) {
        while try step(&state, emit) {}
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
  }

  /// Takes one thing from what is held; false when more bytes are needed.
  private func step(_ state: inout State, _ emit: (UnsafeRawBufferPointer) throws(CloudError) -> Void)
    throws(CloudError) -> Bool
  {
    switch state.place {
    case .end:
      state.held = []
      return false
    case .preamble, .content:
      let isContent = state.place == .content && state.isWanted
      guard let at = state.held.firstIndex(of: boundary) else {
        let count = state.held.count - boundary.count + 1
        if count > 0 {
          if isContent { try hand(state.held[..<count], emit) }
          state.held.removeFirst(count)
        }
        return false
      }
      // Two bytes after it tell whether another part follows.
      guard state.held.count >= at + boundary.count + 2 else { return false }
      if isContent { try hand(state.held[..<at], emit) }
      let isLast = state.held[at + boundary.count] == UInt8(ascii: "-")
      state.held.removeFirst(at + boundary.count)
      state.place = isLast ? .end : .headers
      return true
    case .headers:
      let found = state.held.firstIndex(of: [13, 10, 13, 10])
      // Alike for every way in which the body may come in pieces.
      guard found ?? (state.held.count - 3) <= Self.headerLimit else {
        throw CloudError(.badRequest, "A part of the body has headers of over \(Self.headerLimit) bytes")
      }
      guard let end = found else { return false }
      // The line break before the content may be a part of the next boundary.
      let rest = state.held[(end + 2)...]
      guard rest.count >= boundary.count || !boundary.starts(with: rest) else { return false }
      let headers = String(decoding: state.held[..<end], as: UTF8.self)
      state.isWanted = !state.wasFound && isNamed(headers)
      state.wasFound = state.wasFound || state.isWanted
      state.held.removeFirst(end + 2)
      state.place = .content
      // It does not belong to the content.
      if !state.held.starts(with: boundary) { state.held.removeFirst(2) }
      return true
    }
  }

  private func hand(
    _ bytes: ArraySlice<UInt8>, _ emit: (UnsafeRawBufferPointer) throws(CloudError) -> Void
  ) throws(CloudError) {
    guard !bytes.isEmpty else { return }
    let failure: CloudError? = bytes.withUnsafeBytes { buffer in
      do throws(CloudError) {
        try emit(buffer)
        return nil
      } catch { return error }
    }
    if let failure { throw failure }
  }

  private func isNamed(_ headers: String) -> Bool {
    headers.split(separator: "\r\n").contains { line in
      line.lowercased().hasPrefix("content-disposition:")
        && (line.contains("name=\"\(name)\"") || line.hasSuffix("name=\(name)"))
    }
  }
}

extension [UInt8] {
  /// Where a text begins for the first time. The texts are short and rare, so their first byte decides nearly always.
  fileprivate func firstIndex(of text: [UInt8]) -> Int? {
    guard let first = text.first, count >= text.count else { return nil }
    return withUnsafeBufferPointer { all in
      var at = 0
      while at <= all.count - text.count {
        if all[at] == first, text.withUnsafeBufferPointer({ all[at..<at + text.count].elementsEqual($0) }) { return at }
        at += 1
      }
      return nil
    }
  }
}
