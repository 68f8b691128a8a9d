import Cairn
import CairnEngine
import CairnSQLite
import CairnTables
import Foundation
import Synchronization

/// `cairn sync --watch`: syncs when another program has committed and when the server says that another device has;
/// asks the server every second while it does not tell.
///
/// Runs until it is interrupted, whatever happens to the server; says when that changes.
final class Watch {
  /// How often the file is asked for commits of other programs, in seconds: a question costs microseconds.
  private static let tick = 0.02

  private let sync: DatabaseSync
  private let scope: SyncRequest.Scope
  private let context: CommandContext
  private let path: String
  private let file: FileIdentity
  private let stop: WatchStop
  /// Nil where nothing is fetched.
  private let news: WatchNews?
  private var said: String?

  init(
    _ sync: DatabaseSync, _ scope: SyncRequest.Scope, _ context: CommandContext, _ stop: WatchStop, _ news: WatchNews?
  ) {
    self.sync = sync
    self.stop = stop
    self.news = news
    path = sync.database.path
    file = FileIdentity(path: path)
    self.scope = scope
    self.context = context
  }

  func run() throws -> ExitCode {
    let canceller = Canceller(sync)
    let stop = stop
    var last = SyncRound()
    news?.start()
    defer { news?.stop() }
    try context.interruption.whileHandling({
      stop.set()
      canceller.cancel()
    }) {
      say("watching")
      while !stop.isSet {
        guard file.isStill(at: path) else {
          throw CommandError(
            .failed, "\(path) was removed or replaced while it was watched", remedy: "run the command again")
        }
        do {
          try round(&last)
        } catch {
          guard let sentence = Self.passing(error) else { throw error }
          last.ended = Self.uptime()
          last.isSettled = false
          say("\(sentence); trying again")
        }
        waitForWork(last)
      }
    }
    context.output.report(["stopped": true]) { "stopped" }
    return .done
  }

  /// What the last round saw.
  private struct SyncRound {
    var version: Int64 = -1
    var ended: Double = 0
    /// Whether nothing is left to be tried again: the next thing to do is what somebody says.
    var isSettled = false
  }

  /// A sentence for an error that may pass by itself or by somebody's doing; nil where trying again is of no use.
  private static func passing(_ error: any Error) -> String? {
    switch error {
    case let error as SQLiteError where error.isBusy: return "the file is locked by another program; nothing is lost"
    case let error as SQLiteError where !error.isDamage:
      return CommandError(describing: error).message
    case TablesError.file, is FileLock.Unavailable: return "\(error)"
    // No token is stored: one is given with cairn init, while the watch runs.
    case let error as CommandError where error.code == .failed: return error.message
    default: return nil
    }
  }

  private func round(_ last: inout SyncRound) throws {
    // The round fetches what was heard until now; what is heard during it may have come too late for it.
    _ = news?.takeHint()
    let report = try sync.sync(SyncRequest(scope, isManual: false))
    last.version = sync.versionAtSync
    last.ended = Self.uptime()
    last.isSettled = report.state == "ready" && report.result.failure == nil && report.result.nextRetry == nil
    tell(report)
  }

  /// Returns when another program has committed and was quiet for a moment, when the server has news, when it is time
  /// to ask it, when the file was replaced, or when the watch is stopped.
  private func waitForWork(_ last: SyncRound) {
    var nextLook = last.ended + 1
    var firstSeen: Double?
    var lastSeen = 0.0
    var version = last.version
    while !stop.isSet {
      let now = Self.uptime()
      // A file that can't be read now is looked at again in the next round, which reports it.
      let current = (try? sync.database.dataVersion()) ?? version
      if current != version {
        version = current
        firstSeen = firstSeen ?? now
        lastSeen = now
      }
      if let firstSeen {
        let settings = SyncSettings.watch
        if now - lastSeen >= Double(settings.sendQuiet) / 1_000 { return }
        if now - firstSeen >= Double(settings.sendLatest) / 1_000 { return }
      } else if news?.takeHint() == true || now >= last.ended + pollInterval(last) {
        return
      } else if now >= nextLook {
        guard file.isStill(at: path) else { return }
        nextLook = now + 1
      }
      stop.wait(seconds: Self.tick)
    }
  }

  /// Seconds. Hints take the place of asking only while they come and nothing waits for another try.
  private func pollInterval(_ last: SyncRound) -> Double {
    let hears = last.isSettled && news?.isListening == true
    return Double((hears ? SyncSettings.watch : .watchByPolling).pollInterval) / 1_000
  }

  private static func uptime() -> Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

  // MARK: Words

  private func tell(_ report: SyncReport) {
    let ending = SyncEnding(report)
    if report.counts != TablesCounts() { context.output.line(ending.text) }
    switch ending.state {
    case "ready": say("in sync")
    case "offline": say("the server can't be reached; trying again, nothing is lost")
    case "signedOut": say("the server refuses the token: give a new one with cairn init --token; nothing is lost")
    case "decision": say("waiting for an answer: run cairn decide")
    case let other: say("\(other): cairn status says why")
    }
  }

  /// Says what has changed, once.
  private func say(_ text: String) {
    guard text != said else { return }
    said = text
    if context.output.isJSON { context.output.warning(text) } else { context.output.line(text) }
  }
}

/// Which file a path names: a database that was moved away or replaced is another one, and what is written to the new
/// one would not be seen.
struct FileIdentity: Equatable {
  private var device: UInt64 = 0
  private var number: UInt64 = 0

  init(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    number = UInt64(truncatingIfNeeded: status.st_ino)
  }

  func isStill(at path: String) -> Bool { FileIdentity(path: path) == self }
}

/// Ends a wait at once. Thread-safe.
final class WatchStop: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let flag = Mutex(false)

  var isSet: Bool { flag.withLock { $0 } }

  func set() {
    flag.withLock { $0 = true }
    semaphore.signal()
  }

  /// Ends a wait without stopping.
  func wake() { semaphore.signal() }

  func wait(seconds: Double) { _ = semaphore.wait(timeout: .now() + seconds) }
}
