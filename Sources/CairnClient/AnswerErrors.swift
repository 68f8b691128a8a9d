import CairnRecords
import CairnWire

/// Turns what a transport and a server say into the errors that the engine tells apart (engine section 10).
struct AnswerErrors {
  /// The server, as it is named in reasons.
  let server: String
  /// Texts that must not be shown, in every spelling in which they may come back.
  let secrets: [String]

  init(server: ServerURL, secrets: [String]) {
    self.server = server.description
    self.secrets = secrets.filter { !$0.isEmpty }.flatMap { [$0, RequestURL.encoded($0)] }
  }

  /// Takes tokens out of a text.
  func scrubbed(_ text: String) -> String {
    secrets.reduce(text) { $0.replacing($1, with: "…") }
  }

  func error(_ failure: HTTPFailure) -> CloudError {
    switch failure {
    case .notConnected(let text):
      CloudError(.networkUnavailable, scrubbed("cannot reach \(server): \(text)"))
    case .notSent(let text):
      CloudError(.networkFailure, scrubbed("the connection to \(server) broke while sending: \(text)"))
    case .answerLost(let text):
      CloudError(.serverResponseLost, scrubbed("\(server) was sent the request, but its answer did not come: \(text)"))
    case .answerTooLarge: CloudError(.undecodableAnswer, "the answer of \(server) is too large")
    case .cancelled: CloudError(.cancelled, "the request was cancelled")
    }
  }

  /// The error of an answer whose status is not 2xx.
  func error(_ answer: HTTPResponse) -> CloudError {
    let wait = answer.headers["retry-after"].flatMap { Double($0) }
    // Not JSON is a case of its own below, not a failure here.
    if var error = (try? RequestFailure.decode(answer.body)) ?? nil {
      error.reason = scrubbed(error.reason)
      // The larger of both (section 13, rule 5).
      error.retryAfter = [error.retryAfter, wait].compactMap { $0 }.max()
      return error
    }
    return withoutCode(answer, wait)
  }

  /// An answer without an error code comes from a proxy in between, or from something that is no such server.
  private func withoutCode(_ answer: HTTPResponse, _ wait: Double?) -> CloudError {
    let status = "HTTP \(answer.status)"
    switch answer.status {
    case 300..<400:
      let place = answer.headers["location"].map { String($0.prefix { $0 != "?" && $0 != "#" }) } ?? "elsewhere"
      return CloudError(
        .undecodableAnswer,
        scrubbed(
          "\(server) redirects to \(place), which is not followed with a token: use that address if you trust it"))
    case 401: return CloudError(.authenticationFailed, "\(server) refuses the token (\(status))")
    case 407: return CloudError(.networkUnavailable, "the proxy in front of \(server) wants a password (\(status))")
    case 413:
      return CloudError(.limitExceeded, "the request is too large for \(server) or a proxy before it (\(status))")
    case 421: return CloudError(.authenticationRequired, "\(server) wants a user to sign in (\(status))")
    case 429: return CloudError(.throttled, "\(server) gets too many requests (\(status))", retryAfter: wait)
    case 503:
      // The proxy or server says that it did nothing (tables section 7: counts as offline).
      return CloudError(.networkFailure, "\(server) is not available now (\(status))", retryAfter: wait)
    case 500...:
      return CloudError(
        .serverResponseLost, "\(server) or a proxy before it failed to answer (\(status))", retryAfter: wait)
    default: return notThisService(answer)
    }
  }

  /// The error of an answer with status 2xx whose body is not what the call expects.
  func undecodable(_ answer: HTTPResponse, _ problem: WireError) -> CloudError {
    // Some servers answer an error with status 200.
    if let error = (try? RequestFailure.decode(answer.body)) ?? nil { return error }
    switch problem.kind {
    case .value:
      return CloudError(.undecodableAnswer, scrubbed("the answer of \(server) cannot be understood: \(problem)"))
    case .truncated where answer.body.first == UInt8(ascii: "{"):
      return CloudError(.serverResponseLost, "the answer of \(server) is cut off after \(answer.body.count) bytes")
    default: return notThisService(answer)
    }
  }

  private func notThisService(_ answer: HTTPResponse) -> CloudError {
    let type = answer.headers["content-type"].map { ", \($0.prefix(40))" } ?? ""
    let text = String(decoding: answer.body.prefix(ClientTuning.excerpt), as: UTF8.self)
    let plain = text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : String($0) }.joined()
    return CloudError(
      .undecodableAnswer,
      scrubbed(
        "\(server) does not answer like a Cairn or CloudKit server (HTTP \(answer.status)\(type)): check the address"
          + (plain.isEmpty ? "" : "; it says '\(plain)'")))
  }
}
