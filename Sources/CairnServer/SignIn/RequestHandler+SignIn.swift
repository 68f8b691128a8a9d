import CairnRecords
import CairnServerCore

/// Signing in by a browser (web-services section 3): the user shows a token, the app is given one of its own.
extension RequestHandler {
  func handlesSignIn(_ path: String) -> Bool {
    path == SignInPlace.path || path.hasPrefix(SignInPlace.path + "/")
  }

  func signIn(_ request: HTTPRequest) throws(CloudError) -> HTTPResponse {
    let page = SignInPage(nonce: uuid())
    let place: SignInPlace
    do throws(CloudError) { place = try SignInPlace(request, server) } catch {
      guard error.code == .badRequest || error.code == .accessDenied else { throw error }
      return html(page.refused(error.reason), status: error.code.httpStatus, page, callback: nil)
    }
    guard request.method == "POST" else { return form(place, page) }
    let typed = FormEncoding.value("token", in: request.body) ?? ""
    let hash = WebAuthToken.hash(typed.filter { !$0.isWhitespace })
    guard let caller = try server.caller(tokenHash: hash) else {
      return form(place, page, problem: "This token is not known.", status: 401)
    }
    let token = WebAuthToken.make(randomness)
    try server.addToken(hash: WebAuthToken.hash(token), for: caller)
    switch place.destination {
    case .shown: return html(page.shown(token), status: 200, page, callback: nil)
    case .opener(let origin): return html(page.told(origin, token), status: 200, page, callback: nil)
    case .callback(let url):
      let response = html(page.shown(""), status: 303, page, callback: url)
      response.addHeader("Location", SignInPlace.callback(url, token: token))
      return response
    }
  }

  private func form(
    _ place: SignInPlace, _ page: SignInPage, problem: String? = nil, status: Int = 200
  ) -> HTTPResponse {
    var callback: String?
    if case .callback(let url) = place.destination { callback = url }
    return html(page.form(place, problem: problem), status: status, page, callback: callback)
  }

  private func html(_ text: String, status: Int, _ page: SignInPage, callback: String?) -> HTTPResponse {
    let response = HTTPResponse(status: status, copying: status == 303 ? [] : Array(text.utf8))
    response.addHeader("Content-Type", "text/html; charset=UTF-8")
    // A browser also asks of the page that a sent form is passed on to.
    let target = callback.flatMap(SignInPlace.origin).map { " " + $0 } ?? ""
    response.addHeader(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'nonce-\(page.nonce)'; script-src 'nonce-\(page.nonce)'; "
        + "form-action 'self'\(target); base-uri 'none'; frame-ancestors 'none'")
    response.addHeader("Referrer-Policy", "no-referrer")
    response.addHeader("X-Content-Type-Options", "nosniff")
    response.addHeader("Cache-Control", "no-store")
    return response
  }
}
