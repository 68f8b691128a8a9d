import Cairn
import CairnClient
import CairnEngine
import CairnRecords
import CairnTables
import Foundation

/// Fetches and applies what a prepared file's server has, like `cairn sync DB --fetch-only`, and prints the CPU seconds of
/// fetching and decoding apart from those of merging and applying, the token and the metadata included.
///
///     CAIRN_TOKEN=… CairnTiming DB
///
/// With `--build` it prints the CPU seconds of folding what is in the log, of building what is pending into requests, and of
/// confirming them. Nothing is sent, and the file is of no use afterwards.
///
///     CairnTiming DB --build
@main
enum Main {
  static func main() throws {
    if CommandLine.arguments.count == 3, CommandLine.arguments[2] == "--build" {
      return try build(CommandLine.arguments[1])
    }
    guard CommandLine.arguments.count == 2, let token = ProcessInfo.processInfo.environment["CAIRN_TOKEN"] else {
      FileHandle.standardError.write(Data("usage: CAIRN_TOKEN=… CairnTiming DB, or CairnTiming DB --build\n".utf8))
      exit(2)
    }
    var cloud: TimedCloud?
    let sync = try DatabaseSync(path: CommandLine.arguments[1]) { place in
      let timed = TimedCloud(
        WebServicesDatabase(
          ServiceOptions(
            server: try ServerURL(parsing: place.server), container: place.container,
            environment: ServiceOptions.Environment(rawValue: place.environment) ?? .production, token: token)))
      cloud = timed
      return timed
    }
    let start = TimedCloud.now()
    let report = try sync.sync(SyncRequest(.fetchOnly))
    let spent = TimedCloud.now() - start
    let fetch = cloud?.fetchSeconds ?? 0
    if let failure = report.result.failure { throw failure }
    print(#"{"fetched":\#(report.counts.fetched),"fetch":\#(fetch),"apply":\#(spent - fetch)}"#)
  }

  /// Folds, and builds requests until nothing is pending. Each is taken for saved at once.
  private static func build(_ path: String) throws {
    let database = try SyncedDatabase(path: path, time: SystemTime(), randomness: SystemRandomness())
    let now = SystemTime().wallClock
    let beginning = TimedCloud.now()
    try database.category.gatherLocalChanges(now: now)
    let folded = TimedCloud.now() - beginning
    let request = BatchRequest(limits: CloudLimits(), now: now, isManual: false, deletesOnly: false)
    var built = 0
    var (building, confirming) = (0.0, 0.0)
    while true {
      let start = TimedCloud.now()
      let batch = try database.category.nextBatch(in: database.zone, request)
      building += TimedCloud.now() - start
      guard let batch else { break }
      let results = batch.entries.indices.map { EntryResult.saved(ChangeTag("\(built + $0)")) }
      let answered = TimedCloud.now()
      try database.category.settle(batch, results, now: now)
      confirming += TimedCloud.now() - answered
      built += batch.entries.count
    }
    print(#"{"built":\#(built),"fold":\#(folded),"build":\#(building),"confirm":\#(confirming)}"#)
  }
}
