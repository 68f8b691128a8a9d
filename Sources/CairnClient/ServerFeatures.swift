/// What a server announced in `X-Cairn-Features` (web-services section 15): a comma list, `page` with its maximum.
struct ServerFeatures: Hashable, Sendable {
  /// Without the announcement: Apple, or another server of the protocol.
  static let none = ServerFeatures()

  var names: Set<String> = []
  /// The largest page that the server serves; nil without `page`.
  var maximalPage: Int?

  private init() {}

  init(header: String) {
    for part in header.split(separator: ",") {
      let name = part.filter { $0 != " " && $0 != "\t" }
      if name.hasPrefix("page=") {
        maximalPage = Int(name.dropFirst(5)).flatMap { $0 > 0 ? $0 : nil }
      } else {
        names.insert(name)
      }
    }
  }

  /// What the client asks for where it is offered.
  private static let wanted = ["conflict-record", "tombstone-type", "tombstone-time", "expired-code", "feed-position"]

  /// The value of the query parameter `cairn`; nil where nothing is to be asked for.
  var request: String? {
    var list = Self.wanted.filter { names.contains($0) }
    if let page { list.append("page=\(page)") }
    return list.isEmpty ? nil : list.joined(separator: ",")
  }

  /// Entries per request that the client asks for.
  var page: Int? { maximalPage.map { min($0, ClientTuning.preferredPage) } }

  var reportsDeletionTimes: Bool { names.contains("tombstone-time") }

  var takesGzip: Bool { names.contains("gzip") }
}
