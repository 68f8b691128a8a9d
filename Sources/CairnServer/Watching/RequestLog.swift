import CairnRecords
import CairnWire
import Foundation
import Synchronization

/// One line of JSON per answer, on standard error. Whatever a client sends as text stays out: no query, no path as it
/// was sent, no header, no body; names of users are their record names.
final class RequestLog: Sendable {
  private let queue = DispatchQueue(label: "cairn.request-log")
  private let waiting = Atomic(0)
  private let lost = Atomic(0)
  private let write: @Sendable ([UInt8]) -> Void
  private let now: @Sendable () -> Int64

  /// The most lines that wait for whoever reads them; what is beyond is counted and left out.
  private static let mostWaiting = 10_000

  init(
    now: @escaping @Sendable () -> Int64,
    write: @escaping @Sendable ([UInt8]) -> Void = { FileHandle.standardError.write(Data($0)) }
  ) {
    self.now = now
    self.write = write
  }

  /// Lines that were left out.
  var lostLines: Int { lost.load(ordering: .relaxed) }

  func answered(_ visit: Visit, status: Int, code: CloudError.Code?, bytes: Int, seconds: Double) {
    var line = JSONWriter(capacity: 400)
    begin(&line, visit.uuid, status, code)
    line.pair("method", RequestLog.knownMethods.contains(visit.method) ? visit.method : "other")
    line.pair("operation", visit.operation)
    if let scope = visit.scope {
      line.pair("container", scope.container)
      line.pair("environment", scope.environment.rawValue)
      line.pair("database", scope.kind.rawValue)
    }
    if let caller = visit.caller, !caller.recordName.isEmpty { line.pair("user", caller.recordName) }
    if let app = visit.app { line.pair("app", app.name) }
    line.pair("remote", visit.address)
    line.pair("ms", (seconds * 1_000_000).rounded() / 1_000)
    line.pair("bytesIn", Int64(visit.bodyBytes))
    line.pair("bytesOut", Int64(bytes))
    end(&line)
  }

  func refused(_ uuid: String, status: Int, code: CloudError.Code) {
    var line = JSONWriter(capacity: 200)
    begin(&line, uuid, status, code)
    line.pair("operation", "refused")
    end(&line)
  }

  private static let knownMethods: Set<String> = ["GET", "POST", "PUT", "HEAD", "OPTIONS"]

  private func begin(_ line: inout JSONWriter, _ uuid: String, _ status: Int, _ code: CloudError.Code?) {
    line.beginObject()
    let date = Date(timeIntervalSince1970: Double(now()) / 1_000)
    line.pair("time", date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    line.pair("uuid", uuid)
    line.pair("status", Int64(status))
    if let code { line.pair("code", code.rawValue) }
  }

  private func end(_ line: inout JSONWriter) {
    line.endObject()
    let bytes = line.bytes + [UInt8(ascii: "\n")]
    // Whoever reads standard error may be slow: answers do not wait for it.
    guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= Self.mostWaiting else {
      waiting.subtract(1, ordering: .relaxed)
      lost.add(1, ordering: .relaxed)
      return
    }
    queue.async { [self] in
      write(bytes)
      waiting.subtract(1, ordering: .relaxed)
    }
  }

  /// Waits until every line is written.
  func flush() { queue.sync {} }
}
