#if Server
  import CairnPostgres
  import CairnServer
  import CairnServerCore
  import Foundation

  /// `cairn serve`
  enum ServeCommand: Command {
    static let defaultAddress = "127.0.0.1:8420"

    static let declaration = CommandDeclaration(
      words: ["serve"], summary: "Runs a server",
      discussion: """
        Prints its address when it accepts requests. The folder is created if it is missing; users are added with \
        cairn user add, before or while the server runs. Where it listens beyond this machine, give it a certificate, or \
        put a proxy with TLS in front of it. Any number of servers may run on one database of PostgreSQL, behind any load \
        balancer. SIGTERM and ctrl-C end it after the running requests.
        """,
      options: StorePlace.options + [
        .value("listen", "HOST:PORT", "where to listen, by default \(defaultAddress); port 0 picks a free one"),
        .value("tls-cert", "FILE", "speak TLS with this certificate and its chain, PEM"),
        .value("tls-key", "FILE", "the certificate's private key, PEM"),
        .value(
          "public-url", "URL", "address under which clients reach the server, where a proxy stands in front of it"),
        .value("rate", "N", "requests per second of one user, ten seconds' worth at once; by default not limited"),
        .flag("single-use-tokens", "end a token with its use; the answer carries the next one"),
        .integer(
          "tombstone-days", "DAYS", in: 1...3_650,
          "how long deletions are remembered, by default 180; a device that was away for longer fetches everything again"
        ),
        .choice(
          "locked", ["development", "production", "both"],
          "accept no record types and fields there but those that it knows already; by default any"),
        .flag("no-default-zone-feed", "refuse changes of _defaultZone, as Apple does"),
        .integer(
          "connections", "N", in: 100...100_000,
          "connections at once, by default 1000; seven tenths of them may be clients that wait for changes"),
        .integer(
          "connections-per-address", "N", in: 1...100_000,
          "connections of one address; by default not limited, because behind a proxy all have the same"),
        .integer("request-seconds", "N", in: 1...3_600, "time for a request to come in whole, by default 30"),
        .value("metrics", "HOST:PORT", "serve /metrics for Prometheus and /health there; keep it from clients"),
        .flag("no-console", "serve no web page at /console"),
        .choice("log", ["off", "json"], "a line per request on standard error, by default off"),
      ],
      example: "cairn serve --data /var/lib/cairn --listen 127.0.0.1:8420")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let address = try address(arguments.value("listen") ?? defaultAddress, "listen")
      let settings = try settings(arguments)
      let stopped = StopSignal()
      return try context.interruption.whileHandling({ stopped.raise() }) {
        let server: RunningServer
        do {
          server = try start(StorePlace(arguments), address, settings, try http(arguments))
        } catch let error as ServerStartError { throw CommandError(error) }
        let metrics = server.metricsURL
        context.output.report(["url": .string(server.url), "metrics": JSONValue(metrics)]) {
          "listening on \(server.url)" + (metrics.map { "\nmetrics at \($0)" } ?? "")
        }
        stopped.wait()
        server.stop()
        return .done
      }
    }
  }

  extension ServeCommand {
    private static func start(
      _ place: StorePlace, _ address: ListenAddress, _ settings: ServerSettings, _ http: HTTPSettings
    ) throws -> RunningServer {
      switch place {
      case .folder(let path):
        return try RunningServer.start(data: path, listen: address, settings: settings, http: http)
      case .postgres(let url):
        let storage = try place.openPostgres(url, writers: 8, creating: true)
        do {
          return try RunningServer.start(
            storage: storage, assets: PostgresAssetStore(storage), listen: address, settings: settings, http: http)
        } catch {
          storage.close()
          throw error
        }
      }
    }

    private static func settings(_ arguments: Arguments) throws -> ServerSettings {
      var settings = ServerSettings()
      settings.publicURL = try publicURL(arguments)
      settings.singleUseTokens = arguments.flag("single-use-tokens")
      settings.requestsPerSecond = try rate(arguments)
      if let connections = arguments.integer("connections") { settings.waitingPolls = connections * 7 / 10 }
      if let days = arguments.integer("tombstone-days") { settings.tombstoneRetention = Int64(days) * 86_400_000 }
      settings.defaultZoneHasFeed = !arguments.flag("no-default-zone-feed")
      if let locked = arguments.value("locked") {
        settings.lockedEnvironments = Set(
          ServerEnvironment(rawValue: locked).map { [$0] } ?? ServerEnvironment.allCases)
      }
      return settings
    }

    private static func http(_ arguments: Arguments) throws -> HTTPSettings {
      var http = HTTPSettings()
      switch (arguments.value("tls-cert"), arguments.value("tls-key")) {
      case (let certificate?, let key?):
        http.identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      case (nil, nil): break
      default: throw CommandError.usage("TLS needs a certificate and its key", remedy: "give --tls-cert and --tls-key")
      }
      http.metrics = try arguments.value("metrics").map { try address($0, "metrics") }
      http.logsRequests = arguments.value("log") == "json"
      http.connections = arguments.integer("connections")
      http.servesConsole = !arguments.flag("no-console")
      http.connectionsPerAddress = arguments.integer("connections-per-address")
      if let seconds = arguments.integer("request-seconds") { http.requestSeconds = Double(seconds) }
      return http
    }

    private static func address(_ text: String, _ option: String) throws -> ListenAddress {
      guard let address = ListenAddress(text) else {
        throw CommandError.usage(
          "'\(text)' is no address", remedy: "give --\(option) HOST:PORT, for example \(defaultAddress)")
      }
      return address
    }

    private static func rate(_ arguments: Arguments) throws -> Double? {
      guard let text = arguments.value("rate") else { return nil }
      guard let rate = Double(text), rate.isFinite, rate > 0 else {
        throw CommandError.usage("'\(text)' is no rate", remedy: "give --rate REQUESTS, for example --rate 50")
      }
      return rate
    }

    private static func publicURL(_ arguments: Arguments) throws -> String? {
      guard let url = arguments.value("public-url") else { return nil }
      guard url.hasPrefix("https://") || url.hasPrefix("http://") else {
        throw CommandError.usage("'\(url)' is no address", remedy: "give --public-url https://HOST")
      }
      return url
    }
  }

  /// What one thread waits for until another raises it.
  private final class StopSignal: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    func raise() { semaphore.signal() }
    func wait() { semaphore.wait() }
  }
#endif
