import CairnRecords
import CairnSQLite
import Foundation

/// The executable `cairn`.
@main
enum Main {
  static func main() {
    ignoreBrokenPipes()
    SQLiteLibrary.stopCountingMemory()
    let interruption = Interruption.installed()
    let code = runOnLargeStack {
      CommandLineTool(environment: .process(interruption: interruption)).run(Array(CommandLine.arguments.dropFirst()))
    }
    end(code)
  }

  /// Ends the process without the exit handlers of libraries: OpenSSL's frees what threads that are just ending still
  /// use, which now and then damaged memory after all work was done.
  private static func end(_ code: ExitCode) -> Never {
    fflush(nil)
    _exit(code.rawValue)
  }

  /// Writing to a closed pipe or socket gives an error to the one who writes, not a signal that ends the process.
  private static func ignoreBrokenPipes() {
    signal(SIGPIPE, SIG_IGN)
  }

  /// Runs `body` on a thread of its own with 64 MiB of stack (address space, not memory) and waits for it.
  ///
  /// SQLite's parser, triggers that cascade and nested JSON recurse; the main thread's stack is set by the shell.
  private static func runOnLargeStack(_ body: @escaping @Sendable () -> ExitCode) -> ExitCode {
    let result = SharedExitCode()
    let thread = Thread { result.set(body()) }
    thread.stackSize = 64 << 20
    thread.name = "cairn"
    thread.start()
    return result.wait()
  }
}

/// Hands the exit code from the command's thread to the main thread.
private final class SharedExitCode: Sendable {
  private let condition = NSCondition()
  // Guarded by `condition`, which the compiler can't see.
  private nonisolated(unsafe) var code: ExitCode?

  func set(_ value: ExitCode) {
    condition.withLock {
      code = value
      condition.signal()
    }
  }

  func wait() -> ExitCode {
    condition.withLock {
      while true {
        if let code { return code }
        condition.wait()
      }
    }
  }
}
