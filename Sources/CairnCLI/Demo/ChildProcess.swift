import Foundation
import Synchronization

/// A program that a command has started, with its output in a file.
///
/// Safe to use from any thread. It is killed when this object goes.
final class ChildProcess: Sendable {
  /// Its exit code or the negative number of its signal, once it was collected. From then on its process ID is free for
  /// another process, so that signals are sent under this lock only.
  private let status = Mutex<Int32?>(nil)
  private let processID: pid_t
  private let outputPath: String
  let errorPath: String

  /// Starts `program` with the variables given. Its standard input is empty, its outputs go to the two files.
  init(
    _ program: String, _ arguments: [String], variables: [String: String], outputPath: String, errorPath: String
  ) throws(CommandError) {
    self.outputPath = outputPath
    self.errorPath = errorPath
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, outputPath, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errorPath, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    var strings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in words + strings { free(pointer) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, program, &actions, nil, &words, &strings)
    guard code == 0 else {
      throw CommandError(
        .failed, "\(program) can't be started (\(String(cString: strerror(code))))", remedy: "install cairn again")
    }
    processID = identifier
  }

  deinit {
    kill(SIGKILL)
    _ = waitUntilExit()
  }

  /// What it has printed so far.
  var output: String {
    FileManager.default.contents(atPath: outputPath).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// Sends a signal; does nothing when it has ended.
  func kill(_ signal: Int32) {
    status.withLock { if $0 == nil { _ = systemKill(processID, signal) } }
  }

  var isRunning: Bool { collected() == nil }

  /// Waits for its end. Returns its exit code; the negative number of the signal that ended it.
  func waitUntilExit() -> Int32 {
    while true {
      if let status = collected() { return status }
      // Leaves it to be collected under the lock.
      var info = siginfo_t()
      waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT)
    }
  }

  private func collected() -> Int32? {
    status.withLock { status in
      var raw: Int32 = 0
      if status == nil, waitpid(processID, &raw, WNOHANG) == processID {
        status = raw & 0x7f == 0 ? (raw >> 8) & 0xff : -(raw & 0x7f)
      }
      return status
    }
  }
}

private func systemKill(_ process: pid_t, _ signal: Int32) -> Int32 { kill(process, signal) }
