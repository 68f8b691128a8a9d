import CairnRecords
import CairnSQLite

/// Ends a command: an exit code and one sentence with a remedy, as `sentence: remedy`.
struct CommandError: Error, Equatable, CustomStringConvertible {
  var code: ExitCode
  var message: String

  init(_ code: ExitCode, _ message: String) {
    self.code = code
    self.message = message
  }

  init(_ code: ExitCode = .failed, _ sentence: String, remedy: String) {
    self.init(code, "\(sentence): \(remedy)")
  }

  static func usage(_ sentence: String, remedy: String) -> CommandError {
    CommandError(.usage, sentence, remedy: remedy)
  }

  var description: String { message }
}

extension CommandError {
  /// Any error as one sentence with a remedy. Commands throw better ones where they know more.
  init(describing error: any Error) {
    switch error {
    case let error as CommandError: self = error
    case let error as CloudError: self.init(error)
    case let error as SQLiteError: self.init(error)
    default: self.init(.failed, "\(error)", remedy: "run the command again, and report this if it stays")
    }
  }

  private init(_ error: CloudError) {
    switch error.code {
    case .networkUnavailable, .networkFailure, .serverResponseLost:
      self.init(
        .unreachable, "the server can't be reached (\(error.reason))",
        remedy: "nothing is lost, run the command again when it is up")
    case .throttled, .tryAgainLater, .zoneBusy:
      self.init(.unreachable, "the server is busy (\(error.reason))", remedy: "nothing is lost, run the command later")
    case .authenticationFailed, .authenticationRequired:
      self.init(
        .failed, "the server refuses the token (\(error.reason))",
        remedy: "get a new one with cairn user token and give it to cairn init --token")
    case .cancelled:
      self.init(.failed, "interrupted", remedy: "nothing is lost, run the command again")
    default:
      self.init(.failed, "the server answered \(error)", remedy: "see cairn log and the server's own log")
    }
  }

  private init(_ error: SQLiteError) {
    if error.isBusy {
      self.init(.failed, "the database is locked by another program", remedy: "close it, or run the command again")
    } else {
      self.init(.failed, error.description, remedy: "check the file with sqlite3 and PRAGMA integrity_check")
    }
  }
}
