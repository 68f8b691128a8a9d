import Cairn
import CairnEngine
import CairnTables
import Foundation

/// `cairn sync`
enum SyncCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["sync"], summary: "Syncs a database file with its server",
    discussion: """
      Sends what programs wrote to the file and takes in what other devices wrote, until nothing more can be done now. \
      With --watch it goes on until it is stopped, and keeps running while the server is away.
      """,
    positionals: [ClientSupport.database],
    options: [
      .flag("watch", "keep in sync until stopped"),
      .flag("send-only", "send, don't fetch", excludes: ["fetch-only"]),
      .flag("fetch-only", "fetch, don't send", excludes: ["send-only"]),
    ],
    example: "cairn sync notes.db --watch")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let path = try arguments.required("DB")
      let isWatching = arguments.flag("watch")
      let progress = isWatching ? nil : SyncProgress(context.output)
      let settings = isWatching ? SyncSettings.watchByPolling : SyncSettings()
      let stop = WatchStop()
      let news = isWatching && !arguments.flag("send-only") ? WatchNews { stop.wake() } : nil
      let clientID = news.map { _ in UUID().uuidString }
      let sync = try DatabaseSync(path: path, settings: settings, observer: progress) { place in
        let token = try context.token(arguments, server: place.server, identity: place.user)
        let database = try ClientSupport.connect(
          place, token: token, clientID: clientID,
          tokenChanged: context.tokenKeeper(server: place.server, identity: place.user))
        news?.use(database)
        return database
      }
      if isWatching { return try Watch(sync, scope(arguments), context, stop, news).run() }
      let canceller = Canceller(sync)
      // Without a total only the count is drawn; a file that can't be read fails in the sync itself.
      progress?.pending = { [weak sync] in try? sync?.database.counters().pending }
      defer { progress?.finish() }
      let report = try context.interruption.whileHandling({ canceller.cancel() }) {
        try sync.sync(SyncRequest(scope(arguments)))
      }
      progress?.finish()
      let ending = SyncEnding(report)
      context.output.report(ending.json) { ending.text }
      if let error = ending.error { throw error }
      return ending.exitCode
    }
  }

  private static func scope(_ arguments: Arguments) -> SyncRequest.Scope {
    if arguments.flag("send-only") { return .sendOnly }
    return arguments.flag("fetch-only") ? .fetchOnly : .all
  }
}

/// Lets the signal thread end a sync.
final class Canceller: @unchecked Sendable {
  // Only DatabaseSync.cancel() is called, which may be called from any thread.
  private let sync: DatabaseSync

  init(_ sync: DatabaseSync) { self.sync = sync }

  func cancel() { sync.cancel() }
}
