import CairnRecords
import CairnServerCore
import Foundation
import Synchronization

/// A server that accepts requests, from ``start(data:listen:settings:)`` to ``stop()``. The end of this object stops it
/// at the latest, and waits for that as `stop()` does.
public final class RunningServer: Sendable {
  /// `http://HOST:PORT`, or https, with the port that was chosen.
  public let url: String
  /// Where metrics are, the same way; nil where they are not served.
  public let metricsURL: String?
  public let core: CloudServer
  private let listener: HTTPListener
  private let metricsListener: HTTPListener?
  private let log: RequestLog?
  private let lock: Int32?
  private let isStopped = Atomic(false)

  private init(
    url: String, core: CloudServer, listener: HTTPListener, metrics: (listener: HTTPListener, url: String)?,
    log: RequestLog?, lock: Int32?
  ) {
    self.url = url
    self.core = core
    self.listener = listener
    metricsListener = metrics?.listener
    metricsURL = metrics?.url
    self.log = log
    self.lock = lock
  }

  deinit { stop() }

  /// Starts a server on a data folder, which is created where it is missing. Returns when requests are accepted.
  public static func start(
    data path: String, listen address: ListenAddress, settings: ServerSettings = ServerSettings(),
    http: HTTPSettings = HTTPSettings()
  ) throws(ServerStartError) -> RunningServer {
    let directory = try DataDirectory(path)
    let lock = try directory.lock()
    // What is served is no mere copy from now on.
    unlink(directory.copyMark)
    do {
      return try start(
        storage: try directory.openStorage(), assets: try directory.openAssets(), listen: address, settings: settings,
        http: http, lock: lock, files: [directory.databasePath, directory.databasePath + "-wal"])
    } catch {
      close(lock)
      throw error
    }
  }

  /// Starts a server on an open store, for tests.
  public static func start(
    storage: any Storage, assets: any AssetStore = MemoryAssetStore(), listen address: ListenAddress,
    clock: any ServerClock = SystemServerClock(), randomness: any ServerRandomness = SystemServerRandomness(),
    settings: ServerSettings = ServerSettings(), http: HTTPSettings = HTTPSettings()
  ) throws(ServerStartError) -> RunningServer {
    try start(
      storage: storage, assets: assets, listen: address, clock: clock, randomness: randomness, settings: settings,
      http: http, lock: nil, files: [])
  }

  private static func start(
    storage: any Storage, assets: any AssetStore, listen address: ListenAddress,
    clock: any ServerClock = SystemServerClock(), randomness: any ServerRandomness = SystemServerRandomness(),
    settings: ServerSettings, http: HTTPSettings, lock: Int32?, files: [String]
  ) throws(ServerStartError) -> RunningServer {
    if let connections = http.connections { try OpenFiles.allow(connections: connections) }
    let (socket, bound) = try ListeningSocket.open(address)
    let core: CloudServer
    do {
      core = try CloudServer(
        storage: storage, assets: assets, clock: clock, randomness: randomness, settings: settings)
    } catch {
      close(socket)
      throw ServerStartError(
        "the store can't be used (\(error.detail ?? error.reason))", remedy: "check the disk, or restore a backup")
    }
    let limits = http.limits
    let log = http.logsRequests ? RequestLog(now: { clock.now }, write: http.writeLog) : nil
    let observer = ServerObserver(log: log)
    let handler = RequestHandler(
      server: core, bodyBytes: limits.bodyBytes, isSecure: http.identity != nil, servesConsole: http.servesConsole,
      observer: observer,
      log: { FileHandle.standardError.write(Data("cairn: \($0)\n".utf8)) })
    let listener = HTTPListener(handler: handler, limits: limits, identity: http.identity)
    try listener.start(socket)
    var metrics: (HTTPListener, String)?
    do throws(ServerStartError) {
      if let address = http.metrics {
        metrics = try startMetrics(address, handler, observer, core, listener, files)
      }
    } catch {
      listener.stop()
      core.close()
      throw error
    }
    return RunningServer(
      url: "\(http.identity == nil ? "http" : "https")://\(bound)", core: core, listener: listener, metrics: metrics,
      log: log, lock: lock)
  }

  private static func startMetrics(
    _ address: ListenAddress, _ handler: RequestHandler, _ observer: ServerObserver, _ core: CloudServer,
    _ listener: HTTPListener, _ files: [String]
  ) throws(ServerStartError) -> (HTTPListener, String) {
    let (socket, bound) = try ListeningSocket.open(address)
    var limits = HTTPLimits()
    limits.threads = 1
    limits.connections = 20
    limits.bodyBytes = 1_000
    let started = Double(core.now) / 1_000
    let metrics = MetricsHandler(handler, observer.metrics) { [unowned listener] in
      typealias Gauge = ServerMetrics.Gauge
      return [
        Gauge(
          name: "cairn_waiting_polls", help: "Clients that wait for notifications.",
          value: Double(core.notifications.waiting)),
        Gauge(
          name: "cairn_queued_writes", help: "Writes that wait or are under way.", value: Double(core.queuedWrites)),
        Gauge(name: "cairn_connections", help: "Open connections.", value: Double(listener.connectionCount)),
        Gauge(
          name: "cairn_store_bytes", help: "Bytes of the database file and its log, assets left out.",
          value: files.reduce(0) { $0 + ProcessUsage.size(of: $1) }),
        Gauge(
          name: "cairn_log_lines_lost_total", help: "Lines of the request log that nobody read in time.",
          type: "counter",
          value: Double(observer.log?.lostLines ?? 0)),
        Gauge(name: "process_start_time_seconds", help: "When the server started.", value: started),
      ] + ProcessUsage.gauges
    }
    let own = HTTPListener(handler: metrics, limits: limits)
    try own.start(socket)
    return (own, "http://\(bound)/metrics")
  }

  /// Takes no more requests, finishes the running ones, closes the store. May wait for some seconds. A second call
  /// returns at once.
  public func stop() {
    guard !isStopped.exchange(true, ordering: .sequentiallyConsistent) else { return }
    // Clients that wait for news would be waited for.
    core.notifications.close()
    listener.stop()
    metricsListener?.stop()
    core.close()
    log?.flush()
    if let lock { close(lock) }
  }
}
