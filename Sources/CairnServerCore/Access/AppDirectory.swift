import CairnRecords

/// API tokens and server-to-server keys of a store, for `cairn server`. Works beside a running server, which looks at
/// the store with every request.
public struct AppDirectory: Sendable {
  private let storage: any Storage
  private let clock: any ServerClock

  public init(storage: any Storage, clock: any ServerClock = SystemServerClock()) {
    self.storage = storage
    self.clock = clock
  }

  /// Stores a credential; its time of creation is now.
  ///
  /// - Throws: `exists` when its name or the key is taken, `badRequest` for a name or an origin that is none, and for a
  ///   switch that its kind does not have.
  public func add(_ credential: AppCredential) throws(CloudError) {
    try check(credential)
    var credential = credential
    credential.created = clock.now
    let new = credential
    try write { writer in
      for present in try writer.appCredentials() where present.kind == new.kind {
        if present.name == new.name { throw CloudError(.exists, "'\(new.name)' exists") }
        if present.id == new.id { throw CloudError(.exists, "This key is there already, as '\(present.name)'") }
      }
      try writer.addAppCredential(new)
    }
  }

  /// Those of one kind, by name.
  public func list(_ kind: AppCredential.Kind) throws(CloudError) -> [AppCredential] {
    do { return try storage.read { try $0.appCredentials() }.filter { $0.kind == kind } } catch {
      throw CloudServer.cloudError(error)
    }
  }

  /// Ends a credential. Throws `notFound` when there is none of that name.
  public func remove(_ kind: AppCredential.Kind, named name: String) throws(CloudError) {
    try write { writer in
      let all = try writer.appCredentials()
      guard let found = all.first(where: { $0.kind == kind && $0.name == name }) else {
        throw CloudError(.notFound, "There is no '\(name)'")
      }
      try writer.removeAppCredential(id: found.id)
    }
  }

  private func check(_ credential: AppCredential) throws(CloudError) {
    guard CloudServer.isReadable(credential.name) else {
      throw CloudError(
        .badRequest, "A name has 1 to 255 bytes, no control or invisible characters and no space at its ends")
    }
    if credential.kind == .apiToken, credential.switches.contains(.largeBodyHash) {
      throw CloudError(.badRequest, "largeBodyHash is about signatures: give it to a server-to-server key")
    }
    for origin in credential.origins where !AppDirectory.isOrigin(origin) {
      throw CloudError(
        .badRequest, "'\(origin)' is no origin: write it as https://HOST or https://HOST:PORT, or * for all")
    }
    if let container = credential.container, !CloudServer.isValidContainer(container) {
      throw CloudError(.badRequest, "'\(container)' is no container: its name begins with iCloud.")
    }
  }

  /// `*`, or a scheme and a host without path, as browsers send it. A star inside would match nothing,
  /// nor would the port that browsers leave out.
  static func isOrigin(_ text: String) -> Bool {
    if text == "*" { return true }
    guard let end = text.firstRange(of: "://"), end.lowerBound > text.startIndex else { return false }
    let host = text[end.upperBound...].utf8
    return !host.isEmpty && text.utf8.count <= 255 && text == text.lowercased() && !host.contains(UInt8(ascii: "*"))
      && !(text.hasPrefix("https:") && text.hasSuffix(":443")) && !(text.hasPrefix("http:") && text.hasSuffix(":80"))
      && text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) && !host.contains(where: { "/?#@".utf8.contains($0) })
  }

  private func write(_ body: @escaping @Sendable (any StorageWriter) throws -> Void) throws(CloudError) {
    try CloudServer.write(storage, body)
  }
}

extension CloudServer {
  /// 1 to 255 bytes without control characters.
  static func isPrintable(_ name: String) -> Bool {
    (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
  }

  /// Printable, and as it looks: no space at an end, nothing that is not seen or turns the direction of what follows.
  /// An operator tells names apart by reading them.
  static func isReadable(_ name: String) -> Bool {
    func isSpace(_ scalar: Unicode.Scalar?) -> Bool { scalar?.properties.isWhitespace ?? true }
    return isPrintable(name) && !isSpace(name.unicodeScalars.first) && !isSpace(name.unicodeScalars.last)
      && name.unicodeScalars.allSatisfy { scalar in
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse: false
        // Joiners shape letters and emoji; the other ones only hide.
        case .format: scalar.value == 0x200c || scalar.value == 0x200d
        default: true
        }
      }
  }

  /// `iCloud.` and letters, digits, dots and hyphens.
  public static func isValidContainer(_ name: String) -> Bool {
    let bytes = name.utf8
    return name.hasPrefix("iCloud.") && (8...255).contains(bytes.count)
      && bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
