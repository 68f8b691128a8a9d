import Foundation
import ProcessSupport
import Testing

private enum Chromium {
  static let isMissing = ["chromedriver", "chromium"].contains { (try? Programs.path(of: $0)) == nil }
  /// Where continuous integration runs, a browser that is missing is a fault.
  static let isWanted = ProcessInfo.processInfo.environment["CAIRN_CI"] == "1"
  static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Console/console.py").path
}

/// The console in a browser, with a real server and devices that sync: Tests/Console/console.py.
@Suite(
  .enabled(
    if: !Chromium.isMissing || Chromium.isWanted, "there is no Chromium: apt-get install chromium chromium-driver"))
struct ConsoleTests {
  @Test(
    "web-services W47: sign in, zones, records, fields, history, devices, usage and a live change, on a phone and by keyboard; nothing in records runs",
    .timeLimit(.minutes(10)))
  func browser() throws {
    let result = try Programs.run("python3", [Chromium.script, Programs.cairn()], limit: .seconds(580))
    #expect(result.status == 0 && result.output.hasSuffix("the console works\n"), "\(result.output)\(result.error)")
  }
}
