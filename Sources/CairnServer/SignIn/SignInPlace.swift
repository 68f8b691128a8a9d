import CairnRecords
import CairnServerCore

/// Where a sign-in was asked for, and where its token goes (web-services section 3). All of it stands in the address
/// and is judged by what the operator said of the app, so that no one else is given a token.
struct SignInPlace {
  enum Destination: Hashable {
    /// The browser goes there, with the token as `ckWebAuthToken`.
    case callback(String)
    /// The window that opened the page is told; only a page of this origin hears it.
    case opener(origin: String)
    /// Shown, to be copied into a program.
    case shown
  }

  var app: AppCredential?
  var destination: Destination

  static let path = "/signin"

  /// The address that a client without a user is sent to. The app is named by its credential's hash.
  static func address(_ base: String, _ app: AppCredential?, origin: String?) -> String {
    var address = base + path
    if let app { address += "/" + Hexadecimal.text(app.id) }
    if let origin { address += "?origin=" + FormEncoding.encode(origin) }
    return address
  }

  /// - Throws: `badRequest` for an address that is none, `accessDenied` where the token would go to a page that the app
  ///   does not list. An app that is open to all pages (`*`) lists none.
  init(_ request: HTTPRequest, _ server: CloudServer) throws(CloudError) {
    app = nil
    destination = .shown
    let name = request.path.dropFirst(Self.path.utf8.count + 1)
    if !name.isEmpty {
      guard let id = Hexadecimal.bytes(String(name)), id.count == 32, let found = try server.appCredential(id: id),
        found.kind == .apiToken
      else { throw CloudError(.badRequest, "This address for signing in is not known: ask the app for a new one") }
      app = found
    }
    let origins = (app?.origins ?? []).filter { $0 != "*" }
    if let callback = request.argument("callback") {
      guard let origin = Self.origin(of: callback), origins.contains(origin) else {
        throw CloudError(.accessDenied, "The app does not list the page \(callback)")
      }
      destination = .callback(callback)
    } else if let origin = request.argument("origin") {
      guard origins.contains(origin.lowercased()) else {
        throw CloudError(.accessDenied, "The app does not list pages of \(origin)")
      }
      destination = .opener(origin: origin.lowercased())
    } else if origins.count == 1 {
      destination = .callback(origins[0] + "/")
    }
  }

  /// Scheme, host and port of an address, as browsers spell an origin; nil for what is no web address.
  static func origin(of url: String) -> String? {
    guard url.utf8.count <= 2_000, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\\") }),
      let end = url.firstRange(of: "://")
    else { return nil }
    let scheme = url[..<end.lowerBound].lowercased()
    guard scheme == "https" || scheme == "http" else { return nil }
    let host = url[end.upperBound...].prefix { !"/?#".contains($0) }
    guard !host.isEmpty, !host.contains("@") else { return nil }
    return scheme + "://" + host.lowercased()
  }

  /// A callback with the token in it, in front of a fragment.
  static func callback(_ url: String, token: String) -> String {
    let (address, fragment) = (url.prefix { $0 != "#" }, url.drop { $0 != "#" })
    return address + (address.contains("?") ? "&" : "?") + "ckWebAuthToken=" + FormEncoding.encode(token) + fragment
  }
}

/// `application/x-www-form-urlencoded`.
enum FormEncoding {
  static func encode(_ text: String) -> String {
    let hex = Array("0123456789ABCDEF")
    return text.utf8.reduce(into: "") { result, byte in
      let isPlain = byte < 0x80 && (Character(UnicodeScalar(byte)).isLetter || Character(UnicodeScalar(byte)).isNumber)
      if isPlain || "-._~".utf8.contains(byte) {
        result.unicodeScalars.append(UnicodeScalar(byte))
      } else {
        result += "%\(hex[Int(byte >> 4)])\(hex[Int(byte & 15)])"
      }
    }
  }

  /// The value of a field; nil where there is none, or the text is damaged.
  static func value(_ name: String, in body: [UInt8]) -> String? {
    for pair in body.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, decode(parts[0]) == name else { continue }
      return decode(parts[1])
    }
    return nil
  }

  private static func decode(_ bytes: ArraySlice<UInt8>) -> String? {
    var result: [UInt8] = []
    var at = bytes.startIndex
    while at < bytes.endIndex {
      switch bytes[at] {
      case UInt8(ascii: "+"): result.append(0x20)
      case UInt8(ascii: "%"):
        guard at + 2 < bytes.endIndex,
          let byte = Hexadecimal.bytes(String(decoding: bytes[(at + 1)...(at + 2)], as: UTF8.self))
        else { return nil }
        result += byte
        at += 2
      default: result.append(bytes[at])
      }
      at += 1
    }
    return String(validating: result, as: UTF8.self)
  }
}
