#if canImport(Darwin)
  import Foundation
  import Synchronization

  /// HTTP over URLSession, which Apple's systems want for proxies, VPN and certificate policies.
  ///
  /// URLSession does not say how much of a request was sent, so every failure after the connection counts as a lost
  /// answer: the safe side, because the request may have been acted on.
  final class URLSessionTransport: HTTPTransport {
    private let session: URLSession
    private let state = Mutex(State())

    private struct State {
      var isCancelled = false
      var task: URLSessionTask?
    }

    init() {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.timeoutIntervalForRequest = TimeInterval(ClientTuning.stallTimeout)
      configuration.httpShouldSetCookies = false
      configuration.urlCache = nil
      session = URLSession(configuration: configuration, delegate: RedirectRefusal(), delegateQueue: nil)
    }

    deinit { session.invalidateAndCancel() }

    func cancel() {
      let task = state.withLock { state in
        state.isCancelled = true
        return state.task
      }
      task?.cancel()
    }

    func perform(_ request: HTTPRequest) throws(HTTPFailure) -> HTTPResponse {
      guard let url = URL(string: request.url) else { throw .notConnected("the address is not a URL") }
      var native = URLRequest(url: url)
      for header in request.headers {
        guard let colon = header.firstIndex(of: ":") else { continue }
        let value = header[header.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        native.setValue(value, forHTTPHeaderField: String(header[..<colon]))
      }
      if let body = request.body {
        native.httpMethod = "POST"
        native.httpBody = Data(body)
      }
      let answer = Mutex<Result<HTTPResponse, HTTPFailure>>(.failure(.cancelled))
      let done = DispatchSemaphore(value: 0)
      let task = session.dataTask(with: native) { data, response, error in
        let result = Self.result(data, response, error)
        answer.withLock { $0 = result }
        done.signal()
      }
      let mayRun = state.withLock { state in
        guard !state.isCancelled else { return false }
        state.task = task
        return true
      }
      guard mayRun else { throw .cancelled }
      task.resume()
      done.wait()
      state.withLock { $0.task = nil }
      return try answer.withLock { $0 }.get()
    }

    private static func result(
      _ data: Data?, _ response: URLResponse?, _ error: (any Error)?
    ) -> Result<HTTPResponse, HTTPFailure> {
      if let error = error as? URLError {
        let text = error.localizedDescription
        switch error.code {
        case .cancelled: return .failure(.cancelled)
        case .cannotFindHost, .cannotConnectToHost, .notConnectedToInternet, .dnsLookupFailed, .internationalRoamingOff,
          .dataNotAllowed, .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
          .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
          .appTransportSecurityRequiresSecureConnection:
          return .failure(.notConnected(text))
        default: return .failure(.answerLost(text))
        }
      }
      guard let response = response as? HTTPURLResponse else { return .failure(.answerLost("no HTTP answer")) }
      guard data?.count ?? 0 <= ClientTuning.maximalAnswer else { return .failure(.answerTooLarge) }
      var headers = HTTPHeaders()
      for (name, value) in response.allHeaderFields {
        headers[String(describing: name).lowercased()] = String(describing: value)
      }
      return .success(
        HTTPResponse(status: response.statusCode, headers: headers, body: data.map { [UInt8]($0) } ?? []))
    }
  }

  /// A redirect is handed to the caller as it is: it must not be followed with the token.
  private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest
    ) async -> URLRequest? { nil }
  }
#endif
