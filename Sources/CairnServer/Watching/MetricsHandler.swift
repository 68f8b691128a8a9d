import CairnRecords
import CairnServerCore

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// `/metrics` and `/health` on an address of their own, which need not be open to clients.
final class MetricsHandler: HTTPHandler {
  private let main: RequestHandler
  private let metrics: ServerMetrics
  private let gauges: @Sendable () -> [ServerMetrics.Gauge]

  init(_ main: RequestHandler, _ metrics: ServerMetrics, gauges: @escaping @Sendable () -> [ServerMetrics.Gauge]) {
    self.main = main
    self.metrics = metrics
    self.gauges = gauges
  }

  func handle(_ request: HTTPRequest, respond: @escaping @Sendable (@escaping ResponseMaker) -> Void) {
    let isRead = request.method == "GET" || request.method == "HEAD"
    switch request.path {
    case "/metrics" where isRead:
      let text = metrics.text(gauges())
      respond {
        HTTPResponse(
          status: 200, headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
          copying: Array(text.utf8))
      }
    case "/health" where isRead:
      do throws(CloudError) {
        let maker = try main.health().get()
        respond(maker)
      } catch { respond { [main] in main.refusal(error) } }
    default: respond { [main] in main.refusal(CloudError(.notFound, "There is nothing at this path")) }
    }
  }

  func sink(for request: HTTPRequest) throws(CloudError) -> (sink: any BodySink, limit: Int)? { nil }

  func refusal(_ error: CloudError) -> HTTPResponse { main.refusal(error) }
}

/// What the system says of this process and of files.
enum ProcessUsage {
  static var gauges: [ServerMetrics.Gauge] {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    var found = [
      ServerMetrics.Gauge(
        name: "process_cpu_seconds_total", help: "CPU time of this process.", type: "counter",
        value: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
    ]
    // Linux only.
    if let pages = statm() {
      found.append(
        ServerMetrics.Gauge(
          name: "process_resident_memory_bytes", help: "Memory of this process.",
          value: Double(pages * sysconf(Int32(_SC_PAGESIZE)))))
    }
    return found
  }

  private static func statm() -> Int? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let words = text.split(separator: " ")
    return words.count > 1 ? Int(words[1]) : nil
  }

  /// Bytes of a file; 0 where there is none.
  static func size(of path: String) -> Double {
    var status = stat()
    return stat(path, &status) == 0 ? Double(status.st_size) : 0
  }
}
