import CPostgres

/// Where a PostgreSQL store is: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq's parameters after a `?`.
public struct PostgresURL: Sendable, CustomStringConvertible {
  let text: String
  private let password: String?

  /// Whether a text means a PostgreSQL store, not a folder.
  public static func looksLikeOne(_ text: String) -> Bool {
    text.hasPrefix("postgres://") || text.hasPrefix("postgresql://")
  }

  public init(_ text: String) throws(PostgresStartError) {
    let remedy = "write postgres://USER@HOST:PORT/DATABASE"
    guard PostgresURL.looksLikeOne(text) else {
      throw PostgresStartError("the address of PostgreSQL does not begin with postgres://", remedy: remedy)
    }
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(text, &message) else {
      // libpq's words repeat the address, password and all.
      PQfreemem(message)
      throw PostgresStartError("the address of PostgreSQL can't be read", remedy: remedy)
    }
    defer { PQconninfoFree(options) }
    var password: String?
    var i = 0
    while let keyword = options[i].keyword {
      if String(cString: keyword) == "password", let value = options[i].val { password = String(cString: value) }
      i += 1
    }
    self.text = text
    self.password = password.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Without the password.
  public var description: String {
    // Parameters may hold a password too.
    let text = String(text.split(separator: "?", maxSplits: 1).first ?? "")
    guard let at = text.lastIndex(of: "@"), let scheme = text.range(of: "://") else { return text }
    let user = text[scheme.upperBound..<at].split(separator: ":", maxSplits: 1).first ?? ""
    return String(text[..<scheme.upperBound] + user + text[at...])
  }

  /// libpq's words in one line, without the password.
  func redacted(_ message: String) -> String {
    var line = message.split(separator: "\n").map { $0.trimmed }.joined(separator: "; ")
    if let password { line = line.replacing(password, with: "***") }
    return line
  }

  /// Parameters where the URL has none: a server that has gone is noticed after seconds, not hours.
  var defaults: [(String, String)] {
    [
      ("connect_timeout", "5"), ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "20000"),
    ].filter { !text.contains("\($0.0)=") }
  }

  /// libpq tells why it could not connect in words only. The ones that time does not mend get their SQLSTATE.
  static func state(ofConnectionFailure message: String) -> String {
    if message.contains("password") || message.contains("authentication failed") || message.contains("no pg_hba.conf") {
      return "28P01"
    }
    if message.contains("role \"") && message.contains("does not exist") { return "28000" }
    if message.contains("database \"") && message.contains("does not exist") { return "3D000" }
    return ""
  }
}

extension StringProtocol {
  fileprivate var trimmed: String {
    String(drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
  }
}
