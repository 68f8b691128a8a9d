#if Server
  import CairnServer
  import Foundation

  /// `cairn serve`
  enum ServeCommand: Command {
    static let defaultAddress = "127.0.0.1:8420"

    static let declaration = CommandDeclaration(
      words: ["serve"], summary: "Runs a server",
      discussion: """
        Prints its address when it accepts requests. The folder is created if it is missing; users are added with \
        cairn user add, before or while the server runs. The server speaks plain HTTP: put a proxy with TLS in front \
        of it where it listens beyond this machine. SIGTERM and ctrl-C end it after the running requests.
        """,
      options: [
        .value("data", "DIR", "folder of the server's data", required: true),
        .value("listen", "HOST:PORT", "where to listen, by default \(defaultAddress); port 0 picks a free one"),
        .value(
          "public-url", "URL", "address under which clients reach the server, where a proxy stands in front of it"),
        .value("rate", "N", "requests per second of one user, ten seconds' worth at once; by default not limited"),
        .flag("single-use-tokens", "end a token with its use; the answer carries the next one"),
      ],
      example: "cairn serve --data /var/lib/cairn --listen 127.0.0.1:8420")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let text = arguments.value("listen") ?? defaultAddress
      guard let address = ListenAddress(text) else {
        throw CommandError.usage(
          "'\(text)' is no address", remedy: "give --listen HOST:PORT, for example \(defaultAddress)")
      }
      let stopped = StopSignal()
      return try context.interruption.whileHandling({ stopped.raise() }) {
        let server: RunningServer
        do {
          server = try RunningServer.start(
            data: try arguments.required("data"), listen: address, publicURL: try publicURL(arguments),
            singleUseTokens: arguments.flag("single-use-tokens"), requestsPerSecond: try rate(arguments))
        } catch let error as ServerStartError {
          throw CommandError(.failed, error.sentence, remedy: error.remedy)
        }
        context.output.report(["url": .string(server.url)], text: { "listening on \(server.url)" })
        stopped.wait()
        server.stop()
        return .done
      }
    }
  }

  extension ServeCommand {
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
