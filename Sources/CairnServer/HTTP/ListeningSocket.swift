#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Why a server did not start: one sentence and what to do.
public struct ServerStartError: Error, Hashable, Sendable, CustomStringConvertible {
  public var sentence: String
  public var remedy: String

  public init(_ sentence: String, remedy: String) {
    self.sentence = sentence
    self.remedy = remedy
  }

  public var description: String { "\(sentence): \(remedy)" }
}

/// Where a server listens: `HOST:PORT`, `[V6]:PORT` or `PORT`.
public struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
  public var host: String
  /// 0 lets the system choose.
  public var port: UInt16

  public init(host: String = "127.0.0.1", port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Nil when the text is no address.
  public init?(_ text: String) {
    var host = "127.0.0.1"
    var portText = Substring(text)
    if let colon = text.lastIndex(of: ":") {
      host = String(text[..<colon])
      portText = text[text.index(after: colon)...]
      if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
      if host.isEmpty { host = "0.0.0.0" }
    }
    guard let port = UInt16(portText) else { return nil }
    self.init(host: host, port: port)
  }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A bound TCP socket. Made here and not by libmicrohttpd, so that a failure has its reason.
enum ListeningSocket {
  /// - Returns: the descriptor, and the address with the port that was chosen.
  static func open(_ address: ListenAddress) throws(ServerStartError) -> (Int32, ListenAddress) {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = streamType
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(address.host, String(address.port), &hints, &found)
    guard code == 0, let info = found else {
      throw ServerStartError(
        "\(address.host) is no address of this machine (\(String(cString: gai_strerror(code))))",
        remedy: "give --listen 127.0.0.1:PORT, or 0.0.0.0:PORT for every network")
    }
    defer { freeaddrinfo(found) }
    let descriptor = socket(info.pointee.ai_family, info.pointee.ai_socktype | closeOnExec, info.pointee.ai_protocol)
    guard descriptor >= 0 else { throw failure("opened", address) }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, info.pointee.ai_addr, info.pointee.ai_addrlen) == 0, listen(descriptor, 1024) == 0 else {
      defer { close(descriptor) }
      throw failure("used", address)
    }
    return (descriptor, ListenAddress(host: address.host, port: port(descriptor) ?? address.port))
  }

  private static func failure(_ word: String, _ address: ListenAddress) -> ServerStartError {
    let reason = errno
    let remedy =
      switch reason {
      case EADDRINUSE: "stop the program that listens there, or give another port with --listen"
      case EACCES: "ports below 1024 need root, give a greater one with --listen"
      default: "give another address with --listen"
      }
    return ServerStartError(
      "\(address) can't be \(word) (\(String(cString: strerror(reason))))", remedy: remedy)
  }

  private static func port(_ descriptor: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let code = withUnsafeMutablePointer(to: &storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard code == 0 else { return nil }
    // The port stands at the same place in both families.
    return withUnsafeBytes(of: storage) { UInt16($0[2]) << 8 | UInt16($0[3]) }
  }

  #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
    private static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
  #else
    private static let streamType = SOCK_STREAM
    private static let closeOnExec: Int32 = 0
  #endif
}
