import CMicrohttpd
import CairnRecords
import CairnServerCore
import CairnWire
import Foundation
import Synchronization

/// Answers requests. Called on the listener's threads; `respond` may be called at once or later, from any thread.
protocol HTTPHandler: AnyObject, Sendable {
  func handle(_ request: HTTPRequest, respond: @escaping @Sendable (@escaping ResponseMaker) -> Void)
  /// What takes the body of a request, given without it; nil has it collected. The second part is how many bytes the
  /// body may have.
  func sink(for request: HTTPRequest) throws(CloudError) -> (sink: any BodySink, limit: Int)?
  /// The answer to a request that is not let through.
  func refusal(_ error: CloudError) -> HTTPResponse
}

/// Bounds of what a listener takes.
struct HTTPLimits: Sendable {
  /// Bytes of a body as it is sent.
  var bodyBytes = 32 << 20
  /// Bytes of all bodies that are being collected: bounds memory, whatever clients do.
  var collectedBytes = 96 << 20
  var connections: UInt32 = 1_000
  /// Connections of one address; 0 does not limit.
  var connectionsPerAddress: UInt32 = 0
  /// Seconds without a byte after which a connection is closed.
  var idleSeconds: UInt32 = 60
  /// Seconds for a whole request, however it trickles in; a body has more time, by its bytes.
  var requestSeconds = 30.0
  /// What a body has to come with on the average, once ``requestSeconds`` are over.
  var slowestBytesPerSecond = 10_000.0
  var threads: UInt32 = 4
  /// Seconds that a stop waits for running requests.
  var stopSeconds = 10.0
}

/// HTTP/1.1 over libmicrohttpd: collects bodies, hands whole requests to a handler, sends the answers.
final class HTTPListener: @unchecked Sendable {
  // `daemon` is set in `start` before any callback can run, and cleared in `stop`, which is called once. While there is
  // a daemon, its threads keep the listener.
  let handler: any HTTPHandler
  let limits: HTTPLimits
  private var daemon: OpaquePointer?
  private let identity: TLSIdentity?
  private let slowRequests = DispatchQueue(label: "cairn.slow-requests")
  private var watch: (any DispatchSourceTimer)?
  fileprivate let peers = HTTPPeers()
  private let counters = Mutex(Counters())
  private let gate = ResumeGate()

  private struct Counters {
    var running: [ObjectIdentifier: HTTPExchange] = [:]
    var collectedBytes = 0
    var isStopping = false
  }

  /// - Parameter identity: for TLS; nil speaks plain HTTP.
  init(handler: any HTTPHandler, limits: HTTPLimits = HTTPLimits(), identity: TLSIdentity? = nil) {
    self.handler = handler
    self.limits = limits
    self.identity = identity
  }

  /// Connections that are open.
  var connectionCount: Int { peers.count }

  /// Starts serving on a bound socket, which the listener owns from now on.
  func start(_ socket: Int32) throws(ServerStartError) {
    guard identity == nil || cairn_mhd_has_tls() != 0 else {
      close(socket)
      throw ServerStartError(
        "libmicrohttpd was built without TLS", remedy: "install one with GnuTLS, or put a proxy in front")
    }
    let me = Unmanaged.passRetained(self)
    var settings = cairn_mhd_settings()
    settings.listen_socket = socket
    settings.threads = limits.threads
    settings.connections = limits.connections
    settings.connections_per_address = limits.connectionsPerAddress
    settings.idle_seconds = limits.idleSeconds
    settings.connection_memory = 64 << 10
    func begin() {
      daemon = cairn_mhd_start(
        &settings, accessHandler, requestLine, requestCompleted, connectionChanged, me.toOpaque())
    }
    if let identity {
      // libmicrohttpd reads both while it starts.
      identity.certificate.withCString { certificate in
        identity.privateKey.withCString { key in
          settings.certificate = certificate
          settings.private_key = key
          begin()
        }
      }
    } else {
      begin()
    }
    guard daemon != nil else {
      let reason = String(cString: strerror(errno))
      me.release()
      close(socket)
      throw ServerStartError(
        "the HTTP server did not start (\(reason))",
        remedy: identity == nil
          ? "check the limits of this process" : "check certificate and key, and the limits of this process")
    }
    let interval = min(1, limits.requestSeconds / 4)
    let watch = DispatchSource.makeTimerSource(queue: slowRequests)
    watch.schedule(deadline: .now() + interval, repeating: interval)
    watch.setEventHandler { [peers, limits] in peers.cutOverdue(limits) }
    watch.activate()
    self.watch = watch
  }

  /// Takes no more connections, lets running requests finish and ends.
  func stop() {
    guard let daemon else { return }
    watch?.cancel()
    counters.withLock { $0.isStopping = true }
    let socket = MHD_quiesce_daemon(daemon)
    // Nobody is let in from now on. Its number stays taken until no thread can be about to accept on it.
    if socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
    let deadline = Date(timeIntervalSinceNow: limits.stopSeconds)
    while counters.withLock({ !$0.running.isEmpty }), Date() < deadline { usleep(2_000) }
    // libmicrohttpd aborts the process when it is stopped with suspended connections.
    for exchange in counters.withLock({ Array($0.running.values) }) {
      exchange.finish { [handler] in
        handler.refusal(CloudError(.tryAgainLater, "The server is stopping", retryAfter: 1))
      }
    }
    // No request is left that could be resumed from now on; who is resuming one is through in a moment.
    while !gate.isEmpty { usleep(100) }
    MHD_stop_daemon(daemon)
    if socket >= 0 { close(socket) }
    self.daemon = nil
    Unmanaged.passUnretained(self).release()
  }

  // MARK: Exchanges

  /// An exchange from its request line on. It counts as running once its headers are there.
  fileprivate func begin(_ connection: OpaquePointer, _ target: String) -> HTTPExchange? {
    guard let context = cairn_mhd_context(connection) else { return nil }
    let peer = Unmanaged<HTTPConnection>.fromOpaque(context).takeUnretainedValue()
    peer.beginRequest()
    return HTTPExchange(connection, peer, target: target, gate)
  }

  fileprivate func end(_ exchange: HTTPExchange) {
    exchange.peer.endRequest()
    let unread = exchange.bodyCount
    counters.withLock {
      $0.running[ObjectIdentifier(exchange)] = nil
      $0.collectedBytes -= unread
    }
  }

  /// What is wrong with a request before its body is read; nil lets it through.
  fileprivate func problem(_ connection: OpaquePointer, _ version: String, _ limit: Int) -> CloudError? {
    if counters.withLock({ $0.isStopping }) {
      return CloudError(.tryAgainLater, "The server is stopping", retryAfter: 1)
    }
    let framing = framing(connection)
    if version == "HTTP/1.1", framing.hosts != 1 {
      return CloudError(.badRequest, "A request needs one Host header")
    }
    if !framing.isPlain { return CloudError(.badRequest, "The name of a header is broken") }
    let (lengths, encodings) = (framing.lengths, framing.encodings)
    if lengths.count > 1 || !(lengths.isEmpty || encodings.isEmpty) {
      return CloudError(.badRequest, "A request needs one length: Content-Length or Transfer-Encoding")
    }
    if !encodings.isEmpty, encodings.map({ $0.lowercased() }) != ["chunked"] {
      return CloudError(.badRequest, "The only Transfer-Encoding is chunked")
    }
    guard let length = lengths.first else { return nil }
    guard let count = UInt64(length) else { return CloudError(.badRequest, "Content-Length is no number") }
    return count > UInt64(limit) ? HTTPListener.tooLarge(limit) : nil
  }

  private static func tooLarge(_ limit: Int) -> CloudError {
    CloudError(.badRequest, "The request body is larger than \(limit) bytes")
  }

  /// Looks at a request before its body comes, and gives the exchange a sink where it wants one. Returns what is wrong.
  fileprivate func open(
    _ exchange: HTTPExchange, _ connection: OpaquePointer, _ method: String, _ path: String, _ version: String
  ) -> CloudError? {
    counters.withLock { $0.running[ObjectIdentifier(exchange)] = exchange }
    var limit = limits.bodyBytes
    // Only uploads stream; everything else is spared a second look at its headers.
    guard path.hasPrefix(CloudServer.uploadPath) else { return problem(connection, version, limit) }
    do {
      let found = try handler.sink(for: head(connection, method, path))
      if let found { limit = found.limit }
      if let problem = problem(connection, version, limit) { return problem }
      exchange.sink = found?.sink
      return nil
    } catch { return error }
  }

  /// Takes a part of a body; returns what is wrong with it.
  fileprivate func collect(_ bytes: UnsafeRawBufferPointer, _ exchange: HTTPExchange) -> CloudError? {
    if let sink = exchange.sink {
      do { try sink.take(bytes) } catch {
        // The rest of the body is read and thrown away, so that the client sees the answer.
        exchange.sink = IgnoringSink()
        return error
      }
      return nil
    }
    if exchange.bodyCount + bytes.count > limits.bodyBytes { return HTTPListener.tooLarge(limits.bodyBytes) }
    let fits = counters.withLock { counters in
      guard counters.collectedBytes + bytes.count <= limits.collectedBytes else { return false }
      counters.collectedBytes += bytes.count
      return true
    }
    guard fits else { return CloudError(.tryAgainLater, "Too many large requests at once", retryAfter: 1) }
    exchange.append(bytes)
    return nil
  }

  fileprivate func handOver(_ exchange: HTTPExchange, _ connection: OpaquePointer, _ method: String, _ path: String) {
    exchange.peer.endReceiving()
    let body = exchange.takeBody()
    counters.withLock { $0.collectedBytes -= body.count }
    var request = head(connection, method, path)
    request.body = body
    request.sink = exchange.sink
    request.target = exchange.target
    request.address = exchange.peer.address
    request.hasLeft = { exchange.peer.hasLeft }
    handler.handle(request) { exchange.finish($0) }
  }

  private func head(_ connection: OpaquePointer, _ method: String, _ path: String) -> HTTPRequest {
    var request = HTTPRequest(method: method, path: path)
    forEachValue(connection, .HEADER_KIND) { request.headers[$0.lowercased()] = $1 }
    forEachValue(connection, .GET_ARGUMENT_KIND) { request.query.append(($0, $1)) }
    return request
  }

  /// What says where a request ends.
  private struct Framing {
    var hosts = 0
    var lengths: [String] = []
    var encodings: [String] = []
    var isPlain = true
  }

  /// libmicrohttpd takes a blank before the colon, and a continued line, as a part of the header's name: it would read
  /// the body as the next request, where a proxy in front has read a length.
  private func framing(_ connection: OpaquePointer) -> Framing {
    var found = Framing()
    forEachValue(connection, .HEADER_KIND) { key, value in
      let name = key.lowercased()
      switch name {
      case "host": found.hosts += 1
      case "content-length": found.lengths.append(value)
      case "transfer-encoding": found.encodings.append(value)
      default:
        let isOdd = name.utf8.contains { $0 <= 0x20 || $0 >= 0x7f }
        if isOdd || name.hasPrefix("content-length") || name.hasPrefix("transfer-encoding") { found.isPlain = false }
      }
    }
    return found
  }
}

// MARK: Values of a request

private typealias Visitor = (String, String) -> Void

private func forEachValue(_ connection: OpaquePointer, _ kind: MHD_ValueKind, _ visit: (String, String) -> Void) {
  withoutActuallyEscaping(visit) { visit in
    var visitor: Visitor = visit
    withUnsafeMutablePointer(to: &visitor) { pointer in
      _ = MHD_get_connection_values(
        connection, kind,
        { argument, _, key, value in
          guard let argument, let key else { return .YES }
          argument.assumingMemoryBound(to: Visitor.self).pointee(
            String(cString: key), value.map { String(cString: $0) } ?? "")
          return .YES
        }, pointer)
    }
  }
}

// MARK: Callbacks of libmicrohttpd, on its threads

private func accessHandler(
  _ argument: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ url: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
  _ uploadSize: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let argument, let connection, let url, let method, let version, let uploadSize, let slot else { return .NO }
  let listener = Unmanaged<HTTPListener>.fromOpaque(argument).takeUnretainedValue()
  // Without exchange there is no memory of the request line: the connection goes.
  guard let context = slot.pointee else { return .NO }
  let exchange = Unmanaged<HTTPExchange>.fromOpaque(context).takeUnretainedValue()
  if exchange.beginOpening() {
    let problem = listener.open(
      exchange, connection, String(cString: method), String(cString: url), String(cString: version))
    guard let problem else { return .YES }
    return send(listener.handler.refusal(problem), connection)
  }
  if uploadSize.pointee > 0 {
    let bytes = UnsafeRawBufferPointer(start: upload, count: uploadSize.pointee)
    exchange.peer.receive(bytes.count)
    if let problem = listener.collect(bytes, exchange) { exchange.finish { listener.handler.refusal(problem) } }
    uploadSize.pointee = 0
    return .YES
  }
  if exchange.beginHandingOver() {
    listener.handOver(exchange, connection, String(cString: method), String(cString: url))
  }
  guard let response = exchange.responseOrSuspend() else { return .YES }
  return send(response, connection)
}

/// The first that is heard of a request: what it returns comes back as its slot.
private func requestLine(
  _ argument: UnsafeMutableRawPointer?, _ uri: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let argument, let uri, let connection else { return nil }
  let listener = Unmanaged<HTTPListener>.fromOpaque(argument).takeUnretainedValue()
  return listener.begin(connection, String(cString: uri)).map { Unmanaged.passRetained($0).toOpaque() }
}

private func connectionChanged(
  _ argument: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ change: MHD_ConnectionNotificationCode
) {
  guard let argument, let connection, let context else { return }
  let listener = Unmanaged<HTTPListener>.fromOpaque(argument).takeUnretainedValue()
  if cairn_mhd_is_start(change) != 0 {
    let peer = HTTPConnection(
      descriptor: cairn_mhd_descriptor(connection), address: cairn_mhd_address(connection))
    context.pointee = Unmanaged.passRetained(peer).toOpaque()
    listener.peers.add(peer)
  } else if let opaque = context.pointee {
    let peer = Unmanaged<HTTPConnection>.fromOpaque(opaque)
    listener.peers.remove(peer.takeUnretainedValue())
    peer.release()
    context.pointee = nil
  }
}

private func requestCompleted(
  _ argument: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
  guard let argument, let slot, let context = slot.pointee else { return }
  let listener = Unmanaged<HTTPListener>.fromOpaque(argument).takeUnretainedValue()
  let exchange = Unmanaged<HTTPExchange>.fromOpaque(context)
  listener.end(exchange.takeUnretainedValue())
  exchange.release()
  slot.pointee = nil
}

private final class IgnoringSink: BodySink {
  func take(_ bytes: UnsafeRawBufferPointer) {}
}

/// The answer as libmicrohttpd sends it; it frees the memory and closes the file.
private func reply(_ response: HTTPResponse) -> OpaquePointer? {
  if let file = response.takeFile() {
    let reply = MHD_create_response_from_fd64(file.size, file.descriptor)
    if reply == nil { close(file.descriptor) }
    return reply
  }
  let body = response.takeBody()
  let reply = MHD_create_response_from_buffer(body.count, body.baseAddress, .RESPMEM_MUST_FREE)
  if reply == nil { free(body.baseAddress) }
  return reply
}

private func send(_ response: HTTPResponse, _ connection: OpaquePointer) -> MHD_Result {
  guard let reply = reply(response) else { return .NO }
  defer { MHD_destroy_response(reply) }
  for (name, value) in response.headers { MHD_add_response_header(reply, name, value) }
  return MHD_queue_response(connection, UInt32(response.status), reply)
}
