/// The URL of a call (web-services section 1).
enum RequestURL {
  /// Path of an operation, from `/database`.
  static func path(_ options: ServiceOptions, database: String, operation: String) -> String {
    "\(options.server)/database/1/\(encoded(options.container))/\(options.environment.rawValue)/\(database)/\(operation)"
  }

  /// Query with tokens, encoded once, and requested extensions.
  static func query(apiToken: String?, token: String, extensions: String?, clientID: String? = nil) -> String {
    var parts: [String] = []
    if let apiToken { parts.append("ckAPIToken=\(encoded(apiToken))") }
    parts.append("ckWebAuthToken=\(encoded(token))")
    if let extensions { parts.append("cairn=\(encoded(extensions))") }
    if let clientID { parts.append("clientId=\(encoded(clientID))") }
    return parts.joined(separator: "&")
  }

  /// Percent-encodes everything but RFC 3986's unreserved characters.
  static func encoded(_ text: String) -> String {
    var result: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.append(byte)
      default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
