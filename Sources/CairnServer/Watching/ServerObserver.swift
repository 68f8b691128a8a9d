import CairnRecords
import CairnServerCore

/// Counts every answer, and logs it where that is wanted.
final class ServerObserver: RequestObserver {
  let metrics = ServerMetrics()
  let log: RequestLog?

  init(log: RequestLog?) { self.log = log }

  func answered(_ visit: Visit, status: Int, code: CloudError.Code?, bytes: Int) {
    let now = MonotonicClock.now
    let seconds = now > visit.started ? Double(now - visit.started) / 1_000_000_000 : 0
    metrics.count(
      visit.operation, status: status, code: code, seconds: seconds, bytesIn: visit.bodyBytes, bytesOut: bytes)
    log?.answered(visit, status: status, code: code, bytes: bytes, seconds: seconds)
  }

  func refused(_ uuid: String, status: Int, code: CloudError.Code) {
    metrics.count("refused", status: status, code: code, seconds: 0)
    log?.refused(uuid, status: status, code: code)
  }
}
