import CairnRecords

/// One HTTP request, whole.
public struct HTTPRequest: Sendable {
  public var method: String
  /// Percent-decoded, without query.
  public var path: String
  /// Arguments of the query, decoded, in their order.
  public var query: [(name: String, value: String)]
  /// Header names in lower case.
  public var headers: [String: String]
  public var body: [UInt8]
  /// Path and query as they were sent; signatures are made over them.
  public var target: String
  /// Of the peer, as a number; empty where the request came by no connection.
  var address = ""
  /// Whether the client has closed the connection. Only while the request has no answer.
  var hasLeft: @Sendable () -> Bool = { false }
  /// Where the body went instead, for a request whose bodies are not collected.
  var sink: (any BodySink)?

  public init(
    method: String, path: String, query: [(name: String, value: String)] = [], headers: [String: String] = [:],
    body: [UInt8] = [], target: String? = nil
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
    self.target = target ?? path
  }

  /// The first argument of that name.
  public func argument(_ name: String) -> String? { query.first { $0.name == name }?.value }

  public func header(_ name: String) -> String? { headers[name] }

  /// Whether an argument of the query says yes. Python's clients write `True`.
  func isTrue(_ name: String) -> Bool { argument(name)?.lowercased() == "true" }

  /// Whether `Accept-Encoding` asks for gzip: by its name or by `*`, and not with the weight 0.
  var acceptsGzip: Bool {
    var byStar = false
    for coding in (header("accept-encoding") ?? "").lowercased().split(separator: ",") {
      let parts = coding.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
      let isWanted = !parts.dropFirst().contains { $0.hasPrefix("q=") && (Double($0.dropFirst(2)) ?? 1) == 0 }
      switch parts.first {
      case "gzip", "x-gzip": return isWanted
      case "*": byStar = isWanted
      default: break
      }
    }
    return byStar
  }
}

/// Takes a body as it comes in. Used by one thread at a time.
protocol BodySink: AnyObject, Sendable {
  func take(_ bytes: UnsafeRawBufferPointer) throws(CloudError)
}
