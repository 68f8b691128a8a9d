#if !canImport(Darwin)
  import CCurl
  import Synchronization

  /// HTTP over libcurl: one easy handle in one multi handle, whose connections stay open between requests.
  ///
  /// The multi interface is used for its `curl_multi_wakeup`: a cancel from another thread ends a waiting call at once.
  /// Proxies and certificates are curl's defaults and the usual environment variables.
  final class CurlTransport: HTTPTransport {
    /// `curl_global_init` must run once and before anything else; a lazy static does.
    private static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private struct Handles {
      var easy: UnsafeMutableRawPointer
      var multi: UnsafeMutableRawPointer
    }

    /// Held for the length of a call: curl handles serve one thread at a time.
    private let lock = Mutex(())
    /// Used under ``lock``, but for `curl_multi_wakeup`, which libcurl documents as safe from any thread while the
    /// handle lives; it lives as long as this object.
    nonisolated(unsafe) private let handles: Handles?
    private let isCancelled = Atomic(false)
    private let caFile: String?
    private let acceptsGzip: Bool
    private let stallTimeout: Int

    /// - Parameter stallTimeout: seconds without a byte in either direction after which a request is given up.
    init(caFile: String?, acceptsGzip: Bool, stallTimeout: Int = ClientTuning.stallTimeout) {
      self.stallTimeout = stallTimeout
      self.caFile = caFile
      self.acceptsGzip = acceptsGzip
      if Self.isReady, let easy = curl_easy_init(), let multi = curl_multi_init() {
        handles = Handles(easy: easy, multi: multi)
      } else {
        handles = nil
      }
    }

    deinit {
      guard let handles else { return }
      curl_multi_cleanup(handles.multi)
      curl_easy_cleanup(handles.easy)
    }

    func cancel() {
      isCancelled.store(true, ordering: .sequentiallyConsistent)
      if let handles { curl_multi_wakeup(handles.multi) }
    }

    func perform(_ request: HTTPRequest) throws(HTTPFailure) -> HTTPResponse {
      guard let handles else { throw .notConnected("libcurl could not be started") }
      return try lock.withLock { _ in run(request, handles) }.get()
    }

    private func run(_ request: HTTPRequest, _ pair: Handles) -> Result<HTTPResponse, HTTPFailure> {
      var list: UnsafeMutablePointer<curl_slist>?
      // "Expect" costs a round trip or a second of waiting on larger bodies.
      for header in request.headers + ["Expect:", "Accept: application/json"] { list = curl_slist_append(list, header) }
      defer { curl_slist_free_all(list) }
      let sink = AnswerSink(limit: request.answerLimit)
      var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE) + 1)
      return message.withUnsafeMutableBufferPointer { message in
        configure(pair.easy, request, list, sink, message.baseAddress)
        // curl reads the body where it lies, so it is lent for the length of the transfer.
        let code = (request.body ?? []).withUnsafeBytes { body in
          if request.body != nil {
            cairn_curl_set_pointer(pair.easy, CURLOPT_POSTFIELDS, body.baseAddress ?? UnsafeRawPointer(bitPattern: 1))
            cairn_curl_set_offset(pair.easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
          }
          return transfer(pair)
        }
        // The sink lives until here, past the last callback.
        return withExtendedLifetime(sink) { outcome(code, request, pair.easy, sink, message) }
      }
    }

    private func configure(
      _ easy: UnsafeMutableRawPointer, _ request: HTTPRequest, _ list: UnsafeMutablePointer<curl_slist>?,
      _ sink: AnswerSink, _ message: UnsafeMutablePointer<CChar>?
    ) {
      curl_easy_reset(easy)
      cairn_curl_set_string(easy, CURLOPT_URL, request.url)
      cairn_curl_set_list(easy, CURLOPT_HTTPHEADER, list)
      cairn_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, message)
      cairn_curl_allow_http_only(easy)
      cairn_curl_allow_quick_exit(easy)
      cairn_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
      cairn_curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0)
      cairn_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT, ClientTuning.connectTimeout)
      cairn_curl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
      cairn_curl_set_long(easy, CURLOPT_LOW_SPEED_TIME, stallTimeout)
      cairn_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
      cairn_curl_set_long(easy, CURLOPT_POST, request.body == nil ? 0 : 1)
      if request.body == nil { cairn_curl_set_long(easy, CURLOPT_HTTPGET, 1) }
      if acceptsGzip { cairn_curl_set_string(easy, CURLOPT_ACCEPT_ENCODING, "gzip") }
      if let caFile { cairn_curl_set_string(easy, CURLOPT_CAINFO, caFile) }
      let context = Unmanaged.passUnretained(sink).toOpaque()
      cairn_curl_set_body_sink(easy, receiveBody, context)
      cairn_curl_set_header_sink(easy, receiveHeader, context)
    }

    /// Runs the transfer until it ends or is cancelled; nil when cancelled.
    private func transfer(_ pair: Handles) -> CURLcode? {
      guard curl_multi_add_handle(pair.multi, pair.easy) == CURLM_OK else { return CURLE_FAILED_INIT }
      defer { curl_multi_remove_handle(pair.multi, pair.easy) }
      var running: Int32 = 0
      var result = CURLE_OK
      while true {
        if isCancelled.load(ordering: .sequentiallyConsistent) { return nil }
        guard curl_multi_perform(pair.multi, &running) == CURLM_OK else { return CURLE_FAILED_INIT }
        if cairn_curl_finished(pair.multi, &result) != 0 { return result }
        guard running > 0 else { return CURLE_FAILED_INIT }
        // The wait ends early when something happens or on a wakeup; curl's own timers bound it.
        guard curl_multi_poll(pair.multi, nil, 0, 1000, nil) == CURLM_OK else { return CURLE_FAILED_INIT }
      }
    }

    private func outcome(
      _ code: CURLcode?, _ request: HTTPRequest, _ easy: UnsafeMutableRawPointer, _ sink: AnswerSink,
      _ message: UnsafeMutableBufferPointer<CChar>
    ) -> Result<HTTPResponse, HTTPFailure> {
      guard let code else { return .failure(.cancelled) }
      // curl takes a connection that ends inside the header for a whole answer.
      if code == CURLE_OK, !sink.hasWholeHeader { return .failure(.answerLost("the connection ended early")) }
      if code == CURLE_OK {
        var status = 0
        cairn_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
        return .success(HTTPResponse(status: status, headers: sink.headers, body: sink.body))
      }
      if sink.isOverLimit { return .failure(.answerTooLarge) }
      let detail = message.baseAddress.map { String(cString: $0) } ?? ""
      let text = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
      // Time until the request could begin: zero where no connection came about. A broken handshake counts as such.
      var begun: curl_off_t = 0
      cairn_curl_get_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &begun)
      guard begun > 0 else { return .failure(.notConnected(text)) }
      var uploaded: curl_off_t = 0
      cairn_curl_get_offset(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded)
      return .failure(Int(uploaded) < request.body?.count ?? 0 ? .notSent(text) : .answerLost(text))
    }
  }

  /// Takes an answer as curl delivers it, on the thread of the call.
  private final class AnswerSink {
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    var isOverLimit = false
    /// Whether the empty line after the header came.
    var hasWholeHeader = false
    let limit: Int

    init(limit: Int) { self.limit = limit }

    func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
      guard body.count + bytes.count <= limit else {
        isOverLimit = true
        return false
      }
      if body.isEmpty, let length = headers["content-length"].flatMap({ Int($0) }), headers["content-encoding"] == nil {
        body.reserveCapacity(min(length, 8 << 20))
      }
      body.append(contentsOf: bytes)
      return true
    }

    func takeHeader(_ line: String) {
      if line.hasPrefix("HTTP/") {
        // A new answer begins: what came before was interim or the proxy's.
        headers.removeAll()
        body.removeAll()
        hasWholeHeader = false
      }
      if line == "\r\n" || line == "\n" { hasWholeHeader = true }
      guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      let isEnd: (Character) -> Bool = { $0 == "\r\n" || $0 == "\n" || $0 == "\r" || $0 == " " }
      var end = value
      while let last = end.last, isEnd(last) { end = end.dropLast() }
      headers[line[..<colon].lowercased()] = String(end)
    }
  }

  private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let context else { return 0 }
    let sink = Unmanaged<AnswerSink>.fromOpaque(context).takeUnretainedValue()
    return sink.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
  }

  private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
  ) -> Int {
    guard let context else { return 0 }
    let sink = Unmanaged<AnswerSink>.fromOpaque(context).takeUnretainedValue()
    sink.takeHeader(String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self))
    return size * count
  }
#endif
