import CairnRecords
import CairnServerCore
import CairnWire

/// The console: a page for people, and what it asks that the protocol has no word for (web-services section 17).
extension RequestHandler {
  static let consolePath = "/console"

  /// Nothing of anybody else's runs, loads, frames or receives anything; no text becomes script.
  static let consolePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

  func isConsolePath(_ path: String) -> Bool {
    servesConsole && (path == Self.consolePath || path.hasPrefix(Self.consolePath + "/"))
  }

  func console(_ request: HTTPRequest, _ visit: inout Visit) throws(CloudError) -> ResponseMaker {
    guard request.method == "GET" || request.method == "HEAD" else {
      throw CloudError(.badRequest, "The console is read with GET")
    }
    switch request.path {
    case "/console/overview":
      visit.operation = "console/overview"
      let overview = try server.overview(try consoleCaller(request, &visit))
      return { RequestHandler.consoleAnswer { overview.encode(into: &$0) } }
    case "/console/types":
      visit.operation = "console/types"
      let caller = try consoleCaller(request, &visit)
      let (scope, zone) = try consoleZone(request)
      visit.scope = scope
      let counts = try server.typeCounts(caller, scope, zone: zone)
      return { RequestHandler.consoleAnswer { counts.encode(into: &$0) } }
    case "/console/":
      // Addresses in the page are relative, so that it works behind a proxy that adds a path.
      return {
        RequestHandler.securing(HTTPResponse(status: 308, headers: [("Location", "../console")], copying: []))
      }
    default: return try consoleFile(request)
    }
  }

  private func consoleFile(_ request: HTTPRequest) throws(CloudError) -> ResponseMaker {
    let name = String(request.path.dropFirst(Self.consolePath.utf8.count + 1))
    guard let file = ConsoleFiles.all[name] else { throw CloudError(.notFound, "There is nothing at this path") }
    let isKnown = request.header("if-none-match") == file.tag
    return {
      let response = HTTPResponse(
        status: isKnown ? 304 : 200, headers: [("Content-Type", file.type), ("ETag", file.tag)],
        copying: isKnown ? [] : file.bytes)
      response.addHeader("Cache-Control", "no-cache")
      return RequestHandler.securing(response)
    }
  }

  /// The user whose token a header holds. The token of a page never stands in an address.
  private func consoleCaller(_ request: HTTPRequest, _ visit: inout Visit) throws(CloudError) -> Caller {
    guard let token = bearer(request) else {
      throw CloudError(.authenticationRequired, "request needs authorization")
    }
    let caller = try user(token, &visit)
    visit.caller = caller
    try server.admit(caller)
    return caller
  }

  private func consoleZone(_ request: HTTPRequest) throws(CloudError) -> (DatabaseScope, String) {
    guard let container = request.argument("container"), CloudServer.isValidContainer(container),
      let environment = request.argument("environment").flatMap({ ServerEnvironment(rawValue: $0) }),
      let kind = request.argument("database").flatMap({ DatabaseKind(rawValue: $0) }),
      let zone = request.argument("zone")
    else { throw CloudError(.badRequest, "container, environment, database and zone are wanted") }
    return (DatabaseScope(container: container, environment: environment, kind: kind), zone)
  }

  private static func consoleAnswer(_ write: (inout JSONWriter) -> Void) -> HTTPResponse {
    var writer = JSONWriter(capacity: 4096)
    write(&writer)
    let response = HTTPResponse(status: 200, body: writer)
    response.addHeader("Cache-Control", "no-store")
    return securing(response)
  }

  private static func securing(_ response: HTTPResponse) -> HTTPResponse {
    response.addHeader("Content-Security-Policy", consolePolicy)
    response.addHeader("X-Content-Type-Options", "nosniff")
    response.addHeader("X-Frame-Options", "DENY")
    response.addHeader("Referrer-Policy", "no-referrer")
    response.addHeader("Cross-Origin-Opener-Policy", "same-origin")
    response.addHeader("Cross-Origin-Resource-Policy", "same-origin")
    return response
  }
}
