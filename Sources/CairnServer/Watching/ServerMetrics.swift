import CairnRecords
import Synchronization

/// Counts of answers and how long they took, in the text format of Prometheus.
final class ServerMetrics: Sendable {
  private struct Kind: Hashable {
    var operation: String
    var status: Int
    var code: String
  }

  private struct Durations {
    /// One per bound, not summed up, and one beyond.
    var counts = [Int](repeating: 0, count: ServerMetrics.bounds.count + 1)
    var sum = 0.0
  }

  private struct State {
    var answers: [Kind: Int] = [:]
    var durations: [String: Durations] = [:]
    var bytesIn = 0
    var bytesOut = 0
  }

  /// In seconds; the last is what a poll is held.
  static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

  private let state = Mutex(State())

  func count(
    _ operation: String, status: Int, code: CloudError.Code?, seconds: Double, bytesIn: Int = 0, bytesOut: Int = 0
  ) {
    let place = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    let kind = Kind(operation: operation, status: status, code: code?.rawValue ?? "")
    state.withLock { state in
      state.answers[kind, default: 0] += 1
      state.durations[operation, default: Durations()].counts[place] += 1
      state.durations[operation, default: Durations()].sum += seconds
      state.bytesIn += bytesIn
      state.bytesOut += bytesOut
    }
  }

  /// A value that is read when it is asked for.
  struct Gauge: Sendable {
    var name: String
    var help: String
    var type = "gauge"
    var value: Double
  }

  func text(_ gauges: [Gauge]) -> String {
    let state = state.withLock { $0 }
    var text = """
      # HELP cairn_requests_total Answers by operation, HTTP status and error code.
      # TYPE cairn_requests_total counter

      """
    let kinds = state.answers.keys.sorted { ($0.operation, $0.status, $0.code) < ($1.operation, $1.status, $1.code) }
    for kind in kinds {
      text +=
        "cairn_requests_total{operation=\"\(kind.operation)\",status=\"\(kind.status)\",code=\"\(kind.code)\"} "
        + "\(state.answers[kind] ?? 0)\n"
    }
    text += """
      # HELP cairn_request_duration_seconds From the whole request to its answer.
      # TYPE cairn_request_duration_seconds histogram

      """
    for (operation, durations) in state.durations.sorted(by: { $0.key < $1.key }) {
      var sum = 0
      for (bound, count) in zip(Self.bounds.map { "\($0)" } + ["+Inf"], durations.counts) {
        sum += count
        text += "cairn_request_duration_seconds_bucket{operation=\"\(operation)\",le=\"\(bound)\"} \(sum)\n"
      }
      text += "cairn_request_duration_seconds_sum{operation=\"\(operation)\"} \(durations.sum)\n"
      text += "cairn_request_duration_seconds_count{operation=\"\(operation)\"} \(sum)\n"
    }
    let bytes = [
      Gauge(
        name: "cairn_request_bytes_total", help: "Bytes of request bodies.", type: "counter",
        value: Double(state.bytesIn)),
      Gauge(
        name: "cairn_response_bytes_total", help: "Bytes of answers' bodies, files left out.", type: "counter",
        value: Double(state.bytesOut)),
    ]
    for gauge in bytes + gauges {
      text +=
        "# HELP \(gauge.name) \(gauge.help)\n# TYPE \(gauge.name) \(gauge.type)\n\(gauge.name) \(Self.number(gauge.value))\n"
    }
    return text
  }

  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
  }
}
