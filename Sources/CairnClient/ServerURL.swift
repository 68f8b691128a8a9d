/// The address of a server: scheme, host, port and an optional path in front of `/database`.
public struct ServerURL: Hashable, Sendable, CustomStringConvertible {
  /// How the server is spoken to; only https beyond one machine.
  public enum Scheme: String, Hashable, Sendable { case http, https }

  public let scheme: Scheme
  /// Host name or address, in lower case; an IPv6 address with its brackets.
  public let host: String
  /// Nil means the scheme's own.
  public let port: Int?
  /// Empty, or begins with `/` and does not end with one.
  public let path: String

  /// Why a text is no server's address: one sentence with a remedy.
  public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String
  }

  /// Apple's own service (web-services section 1).
  public static let apple = ServerURL(scheme: .https, host: "api.apple-cloudkit.com", port: nil, path: "")

  private init(scheme: Scheme, host: String, port: Int?, path: String) {
    self.scheme = scheme
    self.host = host
    self.port = port
    self.path = path
  }

  /// Parses `http://HOST[:PORT][/PATH]` or the same with https. White space around it is ignored.
  ///
  /// Refused with a reason: no scheme, other schemes, no host, a user or password, a query or fragment.
  public init(parsing text: String) throws(ParseError) {
    let text = text.trimmingASCIISpaces
    guard !text.isEmpty else { throw ParseError(description: "the server's address is empty: use https://HOST") }
    guard let separator = text.firstRange(of: "://") else { throw Self.withoutScheme(text) }
    let name = text[..<separator.lowerBound].lowercased()
    guard let scheme = Scheme(rawValue: name) else {
      throw ParseError(
        description: name.isEmpty
          ? "\(Self.quoted(text)) is not a URL: use https://HOST"
          : "\(Self.quoted(name)) is not a way to reach a server: use an address that begins with https:// or http://")
    }
    let rest = text[separator.upperBound...]
    guard !rest.contains("?"), !rest.contains("#") else {
      throw ParseError(
        description: "the server's address has a query or fragment: use only \(name)://HOST[:PORT][/PATH]")
    }
    let slash = rest.firstIndex(of: "/") ?? rest.endIndex
    let authority = rest[..<slash]
    guard !authority.contains("@") else {
      throw ParseError(
        description: "the server's address holds a user name: use \(name)://HOST and give the token apart")
    }
    (host, port) = try Self.hostAndPort(authority, scheme: name)
    path = try Self.cleanPath(rest[slash...])
    self.scheme = scheme
  }

  private static func withoutScheme(_ text: String) -> ParseError {
    let looksLikeHost = text.utf8.allSatisfy { isHostByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
    return ParseError(
      description: looksLikeHost
        ? "the server's address \(quoted(text)) lacks its scheme: use https://\(text) or http://\(text)"
        : "\(quoted(text)) is not a URL: use https://HOST")
  }

  private static func hostAndPort(_ text: Substring, scheme: String) throws(ParseError) -> (String, Int?) {
    var host = text
    var portText: Substring?
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]") else {
        throw ParseError(description: "the server's address lacks a ]: use \(scheme)://[ADDRESS]:PORT")
      }
      host = text[...end]
      let after = text[text.index(after: end)...]
      guard after.isEmpty || after.first == ":" else { throw badHost(text, scheme) }
      portText = after.isEmpty ? nil : after.dropFirst()
    } else if let colon = text.firstIndex(of: ":") {
      host = text[..<colon]
      portText = text[text.index(after: colon)...]
    }
    guard !host.isEmpty else { throw ParseError(description: "the server's address has no host: use \(scheme)://HOST") }
    let isAddress = host.first == "["
    let bytes = isAddress ? host.dropFirst().dropLast().utf8 : host.utf8
    guard !bytes.isEmpty, bytes.allSatisfy({ isHostByte($0) || isAddress && $0 == UInt8(ascii: ":") }) else {
      throw badHost(text, scheme)
    }
    guard let portText, !portText.isEmpty else { return (host.lowercased(), nil) }
    guard portText.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let port = Int(portText),
      (1...65535).contains(port)
    else {
      throw ParseError(description: "\(quoted(String(portText))) is not a port: use a number from 1 to 65535")
    }
    return (host.lowercased(), port)
  }

  private static func badHost(_ text: Substring, _ scheme: String) -> ParseError {
    ParseError(description: "\(quoted(String(text))) is not a host name: use \(scheme)://HOST[:PORT]")
  }

  private static func cleanPath(_ text: Substring) throws(ParseError) -> String {
    var path = text
    while path.last == "/" { path = path.dropLast() }
    let isClean = path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }
    guard isClean else {
      throw ParseError(
        description: "the path of the server's address has a character that a URL cannot hold: percent-encode it")
    }
    return String(path)
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func quoted(_ text: String) -> String { "'\(text.prefix(80))'" }

  public var description: String { "\(scheme.rawValue)://\(host)\(port.map { ":\($0)" } ?? "")\(path)" }

  /// Whether the server runs on this machine: requests never leave it.
  public var isLoopback: Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
      || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || $0 <= UInt8(ascii: "9") })
  }
}

extension String {
  fileprivate var trimmingASCIISpaces: String {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
    var text = self[...]
    while let first = text.first, isSpace(first) { text = text.dropFirst() }
    while let last = text.last, isSpace(last) { text = text.dropLast() }
    return String(text)
  }
}
