import Cairn
import CairnAccounts
import CairnClient
import Foundation

/// A small reader of feeds and statuses, to show how an app keeps its logins with CairnAccounts.
///
/// ```
/// echo SECRET | feedreader DIR login https://social.example ada
/// feedreader DIR list | read ID | choose ID | logout ID
/// CAIRN_SERVER=http://127.0.0.1:8080 CAIRN_TOKEN=… feedreader DIR sync
/// echo SECRET | feedreader DIR v1-login https://social.example ada       # what release 1 did
/// ```
@main
enum FeedReader {
  static func main() async {
    do { try await run(Array(CommandLine.arguments.dropFirst())) } catch {
      FileHandle.standardError.write(Data("feedreader: \(error)\n".utf8))
      exit(1)
    }
  }

  struct Usage: Error, CustomStringConvertible {
    var description = "feedreader DIR login|v1-login URL USER, list, read ID, choose ID, logout ID, sync"
  }

  private static func run(_ words: [String]) async throws {
    guard words.count >= 2 else { throw Usage() }
    let folder = URL(fileURLWithPath: words[0])
    if words[1] == "v1-login", words.count == 4, let instance = Instance.at(words[2]) {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      return try LegacyReader(folder: folder).logIn(to: instance, as: words[3], secret: readLine() ?? "")
    }
    let reader = try Reader(
      folder: folder, service: DemoService(), time: SystemTime(), randomness: SystemRandomness())
    switch (words[1], words.count) {
    case ("login", 4):
      guard let instance = Instance.at(words[2]) else { throw Usage() }
      show([try await reader.logIn(to: instance, as: words[3], secret: readLine() ?? "").id.rawValue])
    case ("list", 2): show(try reader.overview())
    case ("read", 3): show(try await reader.timeline(of: try id(words[2])))
    case ("choose", 3): try reader.accounts.select(try id(words[2]))
    case ("logout", 3): try reader.accounts.remove(try id(words[2]))
    case ("sync", 2): try sync(reader)
    default: throw Usage()
    }
  }

  private static func sync(_ reader: Reader) throws {
    let environment = ProcessInfo.processInfo.environment
    guard let server = environment["CAIRN_SERVER"], let token = environment["CAIRN_TOKEN"] else { throw Usage() }
    let cloud = WebServicesDatabase(ServiceOptions(server: try ServerURL(parsing: server), token: token))
    let report = try reader.sync(as: try cloud.currentUser(), with: cloud)
    show(["\(report.state), \(report.status.pending) pending"])
  }

  private static func id(_ text: String) throws -> AccountID {
    guard let id = AccountID(text) else { throw Usage() }
    return id
  }

  private static func show(_ lines: [String]) {
    FileHandle.standardOutput.write(Data(lines.map { $0 + "\n" }.joined().utf8))
  }
}
