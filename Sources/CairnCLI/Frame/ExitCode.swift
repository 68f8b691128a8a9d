/// How `cairn` ends (DESIGN section 7). The numbers are part of the contract.
enum ExitCode: Int32, Sendable {
  /// Everything that was asked is done.
  case done = 0
  /// The command failed; standard error has the reason and a remedy.
  case failed = 1
  /// The command line can't be understood.
  case usage = 2
  /// Done, but something is parked or paused.
  case attention = 3
  /// The server can't be reached; nothing is lost.
  case unreachable = 4
}
