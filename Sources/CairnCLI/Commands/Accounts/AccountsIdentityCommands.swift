import Cairn
import CairnAccounts
import Foundation

/// `cairn accounts switch`
enum AccountsSwitchCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "switch"], summary: "Changes the user of a profile",
    discussion: """
      The accounts of the user before are set aside, with what was not sent, and come back when that user does. Nothing \
      moves from one user to another.
      """,
    positionals: [AccountsProfile.positional],
    options: [
      .value("token", "T", "the other user's token; - reads it from standard input", excludes: ["sign-out"]),
      .flag("sign-out", "nobody: accounts made from now on stay on this device"),
    ],
    example: "cairn accounts switch phone --token -")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let lock = try FileLock(database: profile.database)
      return try withExtendedLifetime(lock) {
        guard arguments.flag("sign-out") || arguments.value("token") != nil else {
          throw CommandError.usage("whose profile it is to be is missing", remedy: "give --token T or --sign-out")
        }
        // Who it is, is known before anything changes: a server that can't be reached changes nothing.
        let user =
          arguments.flag("sign-out") ? nil : try AccountsInitCommand.signIn(arguments, context, profile.place)
        try profile.core.identityChanged(to: user.map { .user($0) } ?? .none)
        context.output.report(["identity": JSONValue(user)]) {
          user.map { "user \($0)\nnext: cairn accounts sync" } ?? "nobody is signed in"
        }
        return .done
      }
    }
  }
}

/// `cairn accounts adopt`
enum AccountsAdoptCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "adopt"], summary: "Moves accounts made while nobody was signed in to the user",
    positionals: [AccountsProfile.positional], example: "cairn accounts adopt phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      guard try profile.user() != nil else {
        throw CommandError(.failed, "nobody is signed in", remedy: "sign in with cairn accounts switch --token T")
      }
      let adopted = try profile.core.adoptLocalAccounts()
      context.output.report(["adopted": .array(adopted.map { .string($0.id.rawValue) })]) {
        adopted.isEmpty ? "nothing to adopt" : "adopted \(adopted.count): the next sync sends them"
      }
      return .done
    }
  }
}

/// `cairn accounts enable`
enum AccountsEnableCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "enable"], summary: "Syncs accounts again", positionals: [AccountsProfile.positional],
    example: "cairn accounts enable phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run { try AccountsDisableCommand.set(true, arguments, context) }
  }
}

/// `cairn accounts disable`
enum AccountsDisableCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "disable"], summary: "Stops syncing accounts; nothing is lost",
    discussion: """
      What comes is kept and applied when accounts are switched on again; what is changed here waits. Accounts stay usable.
      """,
    positionals: [AccountsProfile.positional], example: "cairn accounts disable phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run { try set(false, arguments, context) }
  }

  static func set(_ enabled: Bool, _ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    let profile = try AccountsProfile.open(arguments)
    try profile.core.setEnabled(enabled)
    context.output.report(["enabled": .bool(enabled)]) {
      enabled ? "accounts are synced again\nnext: cairn accounts sync" : "accounts are not synced any more"
    }
    return .done
  }
}

/// `cairn accounts migrate`
enum AccountsMigrateCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "migrate"], summary: "Takes up the logins of an older release",
    discussion: """
      Reads a JSON file of flags and credentials, DIR/legacy.json where none is given: {"version": 1, "instances": [{"id": \
      UUID, "service": NAME, "url": URL, "flag": true, "credential": {"userName": NAME, "secret": S, "revision": R}}]}. \
      The file is remembered and looked at again with every sync. Flags in it are never changed.
      """,
    positionals: [AccountsProfile.positional],
    options: [.value("legacy", "FILE", "file of the older release's logins")],
    example: "cairn accounts migrate phone --legacy old-logins.json")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      var profile = try AccountsProfile.open(arguments)
      try AccountsPassphrase.demand(for: profile)
      if let path = arguments.value("legacy") {
        profile.place.legacy = URL(fileURLWithPath: path).path
        try AccountsProfile.write(profile.place, to: profile.folder)
        profile = try AccountsProfile.open(arguments)
      }
      let path = profile.place.legacy ?? profile.folder + "/legacy.json"
      guard LegacyFile(path: path).isReadable else {
        throw CommandError(
          .failed, "\(path) is no file of legacy logins", remedy: "see cairn accounts migrate --help for its form")
      }
      let report = try profile.core.migrateLegacyLogins()
      context.output.report([
        "migrated": .array(report.migrated.map { .string($0.rawValue) }),
        "waiting": .array(report.waiting.map { .string($0.rawValue) }),
      ]) {
        var lines = ["migrated \(report.migrated.count)"]
        if !report.waiting.isEmpty { lines.append("\(report.waiting.count) wait for the next sync") }
        return lines.joined(separator: "\n")
      }
      return report.waiting.isEmpty ? .done : .attention
    }
  }
}
