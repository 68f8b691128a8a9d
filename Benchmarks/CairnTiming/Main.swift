import Cairn
import CairnClient
import CairnEngine
import CairnTables
import Foundation

/// Fetches and applies what a prepared file's server has, like `cairn sync DB --fetch-only`, and prints the CPU seconds of
/// fetching and decoding apart from those of merging and applying, the token and the metadata included.
///
///     CAIRN_TOKEN=… cairn-timing DB
@main
enum Main {
  static func main() throws {
    guard CommandLine.arguments.count == 2, let token = ProcessInfo.processInfo.environment["CAIRN_TOKEN"] else {
      FileHandle.standardError.write(Data("usage: CAIRN_TOKEN=… cairn-timing DB\n".utf8))
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
}
