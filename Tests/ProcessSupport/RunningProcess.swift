import Foundation

/// A program that a test has started: the built `cairn`, or `sqlite3` as the other program on the same file.
///
/// Its output goes to files, so that it never waits for the test to read. It is killed when this object goes; with it,
/// what it has started. What outlives a program that ended by itself is not looked for. Use it from one thread at a time.
public final class RunningProcess {
  /// What is left when it has ended.
  public struct Result: Equatable, Sendable {
    /// The exit code; the negative number of the signal that ended it.
    public var status: Int32
    public var output: String
    public var error: String

    public init(status: Int32, output: String, error: String) {
      self.status = status
      self.output = output
      self.error = error
    }
  }

  public let processID: pid_t
  private let folder: String
  private var result: Result?

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - program: its path.
  ///   - environment: replaces the variables of the test's own process where they have the same name.
  ///   - input: its standard input; empty at once by default.
  public init(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], input: String = ""
  ) throws {
    folder = NSTemporaryDirectory() + "cairn-process-\(UUID())"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try Data(input.utf8).write(to: URL(fileURLWithPath: folder + "/input"))

    do {
      processID = try Self.spawn(program, arguments, environment, folder)
    } catch {
      try FileManager.default.removeItem(atPath: folder)
      throw error
    }
  }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String], _ folder: String
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, folder + "/input", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, folder + "/output", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, folder + "/error", O_WRONLY | O_CREAT | O_APPEND, 0o600)

    // The test runner blocks or ignores some signals, which a program would inherit.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // A group of its own, so that what it starts itself can be killed with it.
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    let variables = ProcessInfo.processInfo.environment.merging(environment) { _, given in given }
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    var strings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in words + strings { free(pointer) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, program, &actions, &attributes, &words, &strings)
    guard code == 0 else { throw ProcessFailure("\(program) can't be started: \(String(cString: strerror(code)))") }
    return identifier
  }

  deinit {
    if result == nil {
      signal(SIGKILL)
      waitpid(processID, nil, 0)
    }
    // Nothing depends on it: the system cleans its temporary folder.
    try? FileManager.default.removeItem(atPath: folder)
  }

  // MARK: While it runs

  public var output: String { text("output") }
  public var error: String { text("error") }

  /// Sends a signal; does nothing when it has ended. SIGKILL goes to what it has started too, which nobody would end.
  public func signal(_ number: Int32) {
    if result == nil { kill(number == SIGKILL ? -processID : processID, number) }
  }

  /// Whether it still runs.
  public func isRunning() -> Bool {
    collect(WNOHANG)
    return result == nil
  }

  /// Waits until a line of its output starts with `prefix` and returns the rest of that line.
  public func waitForLine(_ prefix: String, limit: Duration = Patience.limit) throws -> String {
    try wait(limit, "no line \(prefix)") {
      // A line without its end is still being written.
      let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.first { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    } orEnd: {
      ProcessFailure("it ended before the line \(prefix)")
    }
  }

  /// Waits until it has ended. Kills it after `limit`, and throws.
  @discardableResult
  public func waitUntilExit(limit: Duration = Patience.limit) throws -> Result {
    try wait(limit, "it did not end") {
      isRunning() ? nil : result
    } orEnd: {
      nil
    }
  }

  // MARK: Waiting

  private func wait<Found>(
    _ limit: Duration, _ message: String, for found: () -> Found?, orEnd ended: () -> ProcessFailure?
  ) throws -> Found {
    let deadline = ContinuousClock.now + limit
    while true {
      let isOver = !isRunning()
      if let found = found() { return found }
      if isOver, let failure = ended() { throw failure.with(result) }
      guard ContinuousClock.now < deadline else {
        signal(SIGKILL)
        collect(0)
        throw ProcessFailure("\(message) within \(limit)").with(result)
      }
      // Another process's state has no event to wait for here; the condition and its limit are above.
      usleep(2_000)
    }
  }

  private func collect(_ options: Int32) {
    guard result == nil else { return }
    var status: Int32 = 0
    guard waitpid(processID, &status, options) == processID else { return }
    let signal = status & 0x7f
    result = Result(status: signal == 0 ? (status >> 8) & 0xff : -signal, output: output, error: error)
  }

  private func text(_ name: String) -> String {
    FileManager.default.contents(atPath: "\(folder)/\(name)").map { String(decoding: $0, as: UTF8.self) } ?? ""
  }
}

/// Why a process did not do what a test waited for, with what it printed.
public struct ProcessFailure: Error, CustomStringConvertible {
  public var description: String

  init(_ description: String) { self.description = description }

  func with(_ result: RunningProcess.Result?) -> ProcessFailure {
    guard let result else { return self }
    return ProcessFailure("\(description)\nstatus \(result.status)\noutput: \(result.output)\nerror: \(result.error)")
  }
}
