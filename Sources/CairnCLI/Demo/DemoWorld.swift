import Foundation
import Synchronization

/// The temporary folder, the server and the calls of `cairn` of one demonstration.
///
/// Everything runs as processes of this same program, by the commands that a user would type.
final class DemoWorld {
  let folder: String
  private let program: String
  private let variables: [String: String]
  private let children: DemoChildren
  private var server: ChildProcess?
  private(set) var serverURL = ""
  private var callCount = 0

  init(_ context: CommandContext, children: DemoChildren) throws {
    self.children = children
    program = try Self.ownPath()
    folder = NSTemporaryDirectory() + "cairn-demo-\(getpid())"
    // The user's own tokens are neither read nor changed.
    variables = context.environment.filter { $0.key != "CAIRN_TOKEN" }
      .merging(["XDG_CONFIG_HOME": folder + "/config"]) { _, own in own }
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandError(.failed, "\(folder) can't be made", remedy: "set TMPDIR to a folder that can be written")
    }
  }

  private static func ownPath() throws(CommandError) -> String {
    #if os(Linux)
      do { return try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") } catch {}
    #else
      if let path = Bundle.main.executablePath { return path }
    #endif
    throw CommandError(.failed, "cairn does not find its own program file", remedy: "mount /proc")
  }

  // MARK: The server

  /// Starts the server and waits for its address.
  func startServer() throws {
    let process = try start(["serve", "--data", folder + "/server", "--listen", "127.0.0.1:0"], name: "serve")
    server = process
    let prefix = "listening on "
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      if let line = process.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        .first(where: { $0.hasPrefix(prefix) })
      {
        serverURL = String(line.dropFirst(prefix.count))
        return
      }
      guard process.isRunning, ContinuousClock.now < deadline else { throw failure("serve", process) }
      usleep(5_000)
    }
  }

  /// Ends the server cleanly.
  func stopServer() {
    server?.kill(SIGTERM)
    _ = server?.waitUntilExit()
    server = nil
  }

  /// Removes the folder and everything in it.
  func remove() throws {
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      throw CommandError(.failed, "\(folder) can't be removed", remedy: "remove it by hand")
    }
  }

  // MARK: Calls

  /// Runs `cairn` with `--json` and gives its answer. Done with something parked (exit code 3) is no failure.
  @discardableResult
  func cairn(_ arguments: [String]) throws -> [String: Any] {
    callCount += 1
    let name = "call\(callCount)"
    let process = try start(arguments + ["--json"], name: name)
    let status = process.waitUntilExit()
    try children.checkInterruption()
    guard [ExitCode.done.rawValue, ExitCode.attention.rawValue].contains(status) else {
      throw failure(arguments.joined(separator: " "), process)
    }
    guard let object = try JSONSerialization.jsonObject(with: Data(process.output.utf8)) as? [String: Any] else {
      throw CommandError(.failed, "cairn \(arguments[0]) gave no JSON object", remedy: "report this")
    }
    return object
  }

  private func start(_ arguments: [String], name: String) throws -> ChildProcess {
    try children.checkInterruption()
    let process = try ChildProcess(
      program, arguments, variables: variables, outputPath: "\(folder)/\(name).out", errorPath: "\(folder)/\(name).err")
    children.add(process)
    return process
  }

  private func failure(_ call: String, _ process: ChildProcess) -> CommandError {
    process.kill(SIGTERM)
    let messages = FileManager.default.contents(atPath: process.errorPath).map { String(decoding: $0, as: UTF8.self) }
    let reason = (messages ?? "").split(separator: "\n").last.map(String.init) ?? "no message"
    return CommandError(.failed, "cairn \(call) failed (\(reason))", remedy: "run it with --keep and look at the files")
  }
}

/// The processes that an interruption ends.
final class DemoChildren: Sendable {
  private struct State {
    var processes: [ChildProcess] = []
    var isInterrupted = false
  }

  private let state = Mutex(State())

  func add(_ process: ChildProcess) {
    let isInterrupted = state.withLock { state in
      state.processes.append(process)
      return state.isInterrupted
    }
    if isInterrupted { process.kill(SIGTERM) }
  }

  /// Ends every process; the command then notices by itself.
  func interrupt() {
    let processes = state.withLock { state in
      state.isInterrupted = true
      return state.processes
    }
    for process in processes { process.kill(SIGTERM) }
  }

  func checkInterruption() throws {
    guard !state.withLock({ $0.isInterrupted }) else {
      throw CommandError(.failed, "interrupted", remedy: "run cairn demo again")
    }
  }
}
