import CairnRecords
import CairnServerCore
import Foundation

/// A server that accepts requests, from ``start(data:listen:settings:)`` to ``stop()``.
public final class RunningServer: Sendable {
  /// `http://HOST:PORT`, with the port that was chosen.
  public let url: String
  public let core: CloudServer
  private let listener: HTTPListener
  private let lock: Int32?

  private init(url: String, core: CloudServer, listener: HTTPListener, lock: Int32?) {
    self.url = url
    self.core = core
    self.listener = listener
    self.lock = lock
  }

  /// Starts a server on a data folder, which is created where it is missing. Returns when requests are accepted.
  public static func start(
    data path: String, listen address: ListenAddress, settings: ServerSettings = ServerSettings()
  ) throws(ServerStartError) -> RunningServer {
    let directory = try DataDirectory(path)
    let lock = try directory.lock()
    do {
      return try start(
        storage: try directory.openStorage(), assets: try directory.openAssets(), listen: address, settings: settings,
        lock: lock)
    } catch {
      close(lock)
      throw error
    }
  }

  /// The same with the usual settings.
  ///
  /// - Parameters:
  ///   - publicURL: the address under which clients reach the server; nil for the one that each request names.
  ///   - singleUseTokens: whether a web auth token serves one request.
  ///   - requestsPerSecond: of one user; nil does not limit.
  public static func start(
    data path: String, listen address: ListenAddress, publicURL: String?, singleUseTokens: Bool = false,
    requestsPerSecond: Double? = nil
  ) throws(ServerStartError) -> RunningServer {
    var settings = ServerSettings()
    settings.publicURL = publicURL
    settings.singleUseTokens = singleUseTokens
    settings.requestsPerSecond = requestsPerSecond
    return try start(data: path, listen: address, settings: settings)
  }

  /// Starts a server on an open store, for tests.
  public static func start(
    storage: any Storage, assets: any AssetStore = MemoryAssetStore(), listen address: ListenAddress,
    clock: any ServerClock = SystemServerClock(), randomness: any ServerRandomness = SystemServerRandomness(),
    settings: ServerSettings = ServerSettings()
  ) throws(ServerStartError) -> RunningServer {
    try start(
      storage: storage, assets: assets, listen: address, clock: clock, randomness: randomness, settings: settings,
      lock: nil)
  }

  private static func start(
    storage: any Storage, assets: any AssetStore, listen address: ListenAddress,
    clock: any ServerClock = SystemServerClock(), randomness: any ServerRandomness = SystemServerRandomness(),
    settings: ServerSettings, lock: Int32?
  ) throws(ServerStartError) -> RunningServer {
    let (socket, bound) = try ListeningSocket.open(address)
    let core: CloudServer
    do {
      core = try CloudServer(
        storage: storage, assets: assets, clock: clock, randomness: randomness, settings: settings)
    } catch {
      close(socket)
      throw ServerStartError("the store can't be used (\(error.reason))", remedy: "check the disk, or restore a backup")
    }
    let limits = HTTPLimits()
    let listener = HTTPListener(
      handler: RequestHandler(
        server: core, bodyBytes: limits.bodyBytes,
        log: { FileHandle.standardError.write(Data("cairn: \($0)\n".utf8)) }), limits: limits)
    try listener.start(socket)
    return RunningServer(url: "http://\(bound)", core: core, listener: listener, lock: lock)
  }

  /// Takes no more requests, finishes the running ones, closes the store. Call once.
  public func stop() {
    // Clients that wait for news would be waited for.
    core.notifications.close()
    listener.stop()
    core.close()
    if let lock { close(lock) }
  }
}
