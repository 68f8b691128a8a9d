import Cairn
import CairnAccounts
import CairnEngine
import CairnRecords

/// `cairn accounts sync`
enum AccountsSyncCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "sync"], summary: "Syncs a profile with its server",
    positionals: [AccountsProfile.positional], example: "cairn accounts sync phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      guard let user = try profile.user() else {
        throw CommandError(
          .failed, "nobody is signed in, accounts stay on this device",
          remedy: "sign in with cairn accounts switch --token T")
      }
      let lock = try FileLock(database: profile.database)
      let server = profile.place.server
      let token = try context.token(
        arguments, server: server, identity: user,
        command: "cairn accounts init \(profile.folder) --server \(server) --token T")
      let cloud = try AccountsProfile.connect(
        profile.place, user: user, token: token, tokenChanged: context.tokenKeeper(server: server, identity: user))
      let sync = try AccountsSync(profile.core, cloud: cloud, zone: ZoneID(name: profile.place.zone), user: user)
      let report = try withExtendedLifetime(lock) {
        try context.interruption.whileHandling({ cloud.cancel() }) { try sync.sync() }
      }
      let ending = AccountsSyncEnding(report)
      context.output.report(ending.json) { ending.text }
      if let error = ending.error { throw error }
      return ending.exitCode
    }
  }
}

/// How a sync ended, in the contract's words and exit codes (DESIGN section 7).
struct AccountsSyncEnding {
  let report: AccountsReport

  init(_ report: AccountsReport) { self.report = report }

  private var summary: SyncSummary {
    let counts = report.counts
    return SyncSummary(
      saved: counts.saved, deleted: counts.deleted, fetched: counts.fetched, removed: counts.removed,
      conflicts: counts.conflicts, parked: report.status.parked, pending: report.status.pending, quiet: report.quiet,
      state: report.state)
  }

  var json: JSONValue { summary.json }

  var text: String {
    var text = summary.text(hasFailed: error != nil, pendingHint: "cairn accounts status")
    if text.isEmpty { return text }
    if !report.status.isEnabled { text += "; accounts are switched off (cairn accounts enable)" }
    return text
  }

  /// The failure to print and end with; nil when the sync did what it could.
  var error: CommandError? {
    switch report.result.failure {
    case nil, .rateLimited?, .backingOff?: return nil
    case .cloud(let error)?:
      switch report.result.condition {
      case .decision, .paused: return nil
      case .signedOut:
        return CommandError(
          .failed, "the server refuses the token (\(error.reason))",
          remedy: "get a new one with cairn user token and give it to cairn accounts init --token")
      default: return CommandError(describing: error)
      }
    case .anotherUser?:
      return CommandError(
        .failed, "the token belongs to another user than this profile",
        remedy: "change the user with cairn accounts switch --token T")
    case .store(let text)?:
      return CommandError(
        .failed, "the profile could not be used (\(text))", remedy: "nothing is lost; check the disk")
    case .replaced?, .noAccount?, .unresolvedAccount?:
      return CommandError(.failed, "the user has changed meanwhile", remedy: "nothing is lost, run the command again")
    case .reentrantCall?, .cancelled?:
      return CommandError(.failed, "interrupted", remedy: "nothing is lost, run the command again")
    }
  }

  var exitCode: ExitCode {
    switch report.result.condition {
    case .signedOut: .failed
    case .offline: .unreachable
    case .decision, .paused: .attention
    case .ready: report.status.parked > 0 || report.status.isPaused ? .attention : .done
    }
  }
}
