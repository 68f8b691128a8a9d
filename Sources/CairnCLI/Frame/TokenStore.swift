import Foundation

/// The tokens of this user, by server and identity: `$XDG_CONFIG_HOME/cairn/credentials.json`.
///
/// The directory is made with mode 0700 and the file with 0600; the file is replaced by rename, under a lock, so that
/// readers see the old or the new one and two writers don't lose each other's. The format:
/// `{"version": 1, "credentials": [{"server": URL, "identity": NAME, "token": T}, …]}`.
struct TokenStore: Sendable {
  private struct Contents: Codable {
    struct Entry: Codable {
      var server: String
      var identity: String
      var token: String
    }
    var version: Int
    var credentials: [Entry]
  }

  let directory: String

  var path: String { directory + "/credentials.json" }

  init(directory: String) { self.directory = directory }

  /// `$XDG_CONFIG_HOME/cairn`, where it is set and absolute as its specification demands, else `~/.config/cairn`.
  init(environment: [String: String]) {
    if let base = environment["XDG_CONFIG_HOME"], base.hasPrefix("/") {
      directory = base + "/cairn"
    } else {
      directory = (environment["HOME"] ?? NSHomeDirectory()) + "/.config/cairn"
    }
  }

  /// The stored token; nil when there is none.
  func token(server: String, identity: String) throws(CommandError) -> String? {
    let server = Self.normalized(server)
    return try read().credentials.first { $0.server == server && $0.identity == identity }?.token
  }

  /// The identities that have a token for a server.
  func identities(server: String) throws(CommandError) -> [String] {
    let server = Self.normalized(server)
    return try read().credentials.filter { $0.server == server }.map(\.identity)
  }

  /// Stores a token in place of the one of the same server and identity.
  func store(_ token: String, server: String, identity: String) throws(CommandError) {
    let server = Self.normalized(server)
    try change { contents in
      contents.credentials.removeAll { $0.server == server && $0.identity == identity }
      contents.credentials.append(.init(server: server, identity: identity, token: token))
    }
  }

  /// Removes a token; does nothing where there is none.
  func remove(server: String, identity: String) throws(CommandError) {
    let server = Self.normalized(server)
    try change { contents in
      contents.credentials.removeAll { $0.server == server && $0.identity == identity }
    }
  }

  /// A token without surrounding white space.
  ///
  /// - Throws: when it is empty or has characters that can't stand in an HTTP header.
  static func checked(_ token: String) throws(CommandError) -> String {
    let token = token.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .usage("the token is empty or has spaces in it", remedy: "give it as cairn user token prints it")
    }
    return token
  }

  /// A server's address with scheme and host in lower case and without trailing slashes, so that one server has one
  /// name.
  static func normalized(_ server: String) -> String {
    var server = server
    while server.hasSuffix("/") { server.removeLast() }
    guard let scheme = server.range(of: "://") else { return server.lowercased() }
    let end = server[scheme.upperBound...].firstIndex(of: "/") ?? server.endIndex
    return server[..<end].lowercased() + server[end...]
  }

  // MARK: The file

  private func read() throws(CommandError) -> Contents {
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch CocoaError.fileReadNoSuchFile {
      return Contents(version: 1, credentials: [])
    } catch {
      throw CommandError(.failed, "\(path) can't be read", remedy: "check who owns it and its mode (0600)")
    }
    let contents: Contents
    do {
      contents = try JSONDecoder().decode(Contents.self, from: data)
    } catch {
      throw CommandError(
        .failed, "\(path) is not a credentials file of cairn",
        remedy: "repair or move it away, and give the token again with cairn init DB --token T")
    }
    guard contents.version == 1 else {
      throw CommandError(
        .failed, "\(path) was written by a newer cairn (version \(contents.version))", remedy: "update cairn")
    }
    return contents
  }

  private func change(_ body: (inout Contents) -> Void) throws(CommandError) {
    try makeDirectory()
    let lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard lock >= 0, flock(lock, LOCK_EX) == 0 else {
      if lock >= 0 { close(lock) }
      throw failure("locked", directory)
    }
    defer { close(lock) }
    var contents = try read()
    body(&contents)
    try write(contents)
  }

  private func makeDirectory() throws(CommandError) {
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw failure("made", directory)
    }
  }

  private func write(_ contents: Contents) throws(CommandError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw failure("written", temporary) }
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    do {
      try handle.write(contentsOf: encoder.encode(contents) + Data("\n".utf8))
      try handle.synchronize()
    } catch {
      unlink(temporary)
      throw failure("written", temporary)
    }
    guard rename(temporary, path) == 0 else {
      let error = failure("replaced", path)
      unlink(temporary)
      throw error
    }
  }

  private func failure(_ what: String, _ path: String) -> CommandError {
    CommandError(
      .failed, "\(path) can't be \(what) (\(String(cString: strerror(errno))))",
      remedy: "make the folder writable, or set XDG_CONFIG_HOME to another, or pass the token in CAIRN_TOKEN")
  }
}
