import CairnWire

/// The files of the console, which are part of the program.
enum ConsoleFiles {
  struct File: Sendable {
    var bytes: [UInt8]
    var type: String
    /// Changes with the content. Weak, because an answer may be compressed.
    var tag: String
  }

  /// By the name after `/console/`; the page itself has none.
  static let all: [String: File] = {
    var files: [String: File] = [:]
    for (name, bytes) in contents {
      files[name] = File(bytes: bytes, type: type(of: name), tag: tag(bytes))
    }
    return files
  }()

  private static let contents: [(String, [UInt8])] = [
    ("", PackageResources.index_html), ("console.css", PackageResources.console_css),
    ("console.js", PackageResources.console_js), ("api.js", PackageResources.api_js),
    ("dom.js", PackageResources.dom_js), ("values.js", PackageResources.values_js),
    ("overview.js", PackageResources.overview_js), ("zone.js", PackageResources.zone_js),
    ("record.js", PackageResources.record_js), ("changes.js", PackageResources.changes_js),
    ("devices.js", PackageResources.devices_js), ("usage.js", PackageResources.usage_js),
    ("live.js", PackageResources.live_js), ("scope.js", PackageResources.scope_js),
    ("icon.svg", PackageResources.icon_svg),
  ]

  private static func type(of name: String) -> String {
    if name.hasSuffix(".svg") { return "image/svg+xml" }
    if name.hasSuffix(".js") { return "text/javascript; charset=utf-8" }
    return name.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8"
  }

  private static func tag(_ bytes: [UInt8]) -> String {
    "W/\"\(Base64.encode(Array(SHA256Hash.of(bytes).prefix(12))))\""
  }
}
