import Foundation

/// The programs of process tests.
public enum Programs {
  /// The `cairn` that was built with these tests: it is beside their bundle.
  public static func cairn() throws -> String {
    let bundle: URL
    #if os(Linux)
      bundle = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    #else
      bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL ?? Bundle.main.bundleURL
    #endif
    let path = bundle.deletingLastPathComponent().appendingPathComponent("cairn").path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw ProcessFailure("there is no \(path): run swift build first")
    }
    return path
  }

  /// The `sqlite3` shell in the PATH.
  public static func sqlite3() throws -> String { try path(of: "sqlite3") }

  /// A program in the PATH.
  public static func path(of name: String) throws -> String {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    guard let path = folders.map({ "\($0)/\(name)" }).first(where: FileManager.default.isExecutableFile) else {
      throw ProcessFailure("there is no \(name) in the PATH: run scripts/bootstrap")
    }
    return path
  }

  /// Runs a program of the PATH to its end.
  public static func run(
    _ name: String, _ arguments: [String], limit: Duration = Patience.limit
  ) throws -> RunningProcess.Result {
    try RunningProcess(path(of: name), arguments).waitUntilExit(limit: limit)
  }

  /// Runs `cairn` to its end.
  public static func runCairn(
    _ arguments: [String], environment: [String: String] = [:], input: String = "", limit: Duration = Patience.limit
  ) throws -> RunningProcess.Result {
    try RunningProcess(cairn(), arguments, environment: environment, input: input).waitUntilExit(limit: limit)
  }

  /// Runs SQL in the `sqlite3` shell, which stops at the first error.
  public static func runSQL(
    _ sql: String, in database: String, limit: Duration = Patience.limit
  ) throws -> RunningProcess.Result {
    try RunningProcess(sqlite3(), ["-batch", "-bail", database], input: sql).waitUntilExit(limit: limit)
  }
}
