import CairnAccounts
import Foundation

/// `cairn accounts add`
enum AccountsAddCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "add"], summary: "Adds a login; its secret is read from standard input",
    discussion: """
      The secret is one line of standard input. It stays on this device, in the profile's folder credentials. Adding a \
      user who has an account on the instance already signs in to that one again.
      """,
    positionals: [AccountsProfile.positional],
    options: [
      .value("instance", "URL", "address of the instance, without user, password and query", required: true),
      .value("user", "NAME", "user name there", required: true),
      .value("service", "NAME", "kind of the instance, default login"),
      .value("label", "TEXT", "what to call it"),
    ],
    example: "cairn accounts add phone --instance https://example.social --user ada < secret.txt")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let url = try arguments.required("instance")
      guard !InstanceURL.holdsMore(url), InstanceURL.cleaned(url) != nil else {
        // What stands in it may be secret: it is not repeated.
        throw CommandError.usage(
          "the instance is no plain address", remedy: "give scheme, host and path, without user, password and query")
      }
      let profile = try AccountsProfile.open(arguments)
      try AccountsPassphrase.demand(for: profile)
      guard let secret = context.readInput(), !secret.isEmpty else {
        throw CommandError.usage("there is no secret on standard input", remedy: "pipe it into the command")
      }
      let user = try arguments.required("user")
      let login = NewLogin(
        instanceID: InstanceNames.id(url, profile), service: arguments.value("service") ?? "login", instanceURL: url,
        userName: user, label: arguments.value("label"))
      let account = try profile.core.add(login, credential: Credential(userName: user, secret: Data(secret.utf8)))
      context.output.report([
        "id": .string(account.id.rawValue), "instance": .string(account.instanceURL),
        "user": JSONValue(account.userName),
      ]) { "added \(account.id): \(account.userName ?? "") on \(account.instanceURL)" }
      return .done
    }
  }
}

/// `cairn accounts edit`
enum AccountsEditCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "edit"], summary: "Changes what an account is called, and where it stands",
    positionals: [AccountsProfile.positional, .required("ID", "the account")],
    options: [
      .value("label", "TEXT", "what to call it"), .flag("no-label", "take the label away", excludes: ["label"]),
      .integer("position", "N", in: -1_000_000...1_000_000, "place in lists, ascending"),
    ],
    example: "cairn accounts edit phone 6f1e7a0c-0000-4000-8000-000000000000 --label work")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let id = try AccountsProfile.accountID(try arguments.required("ID"))
      let label = arguments.flag("no-label") ? "" : arguments.value("label")
      guard label != nil || arguments.integer("position") != nil else {
        throw CommandError.usage("nothing is to be changed", remedy: "give --label or --position")
      }
      try profile.core.edit(id, AccountEdit(label: label, position: arguments.integer("position").map(Double.init)))
      let account = try profile.core.account(id)
      context.output.report(["id": .string(id.rawValue), "label": JSONValue(account.label)]) { "changed \(id)" }
      return .done
    }
  }
}

/// `cairn accounts remove`
enum AccountsRemoveCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "remove"], summary: "Deletes an account on every device, for ever",
    positionals: [AccountsProfile.positional, .required("ID", "the account")],
    example: "cairn accounts remove phone 6f1e7a0c-0000-4000-8000-000000000000")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let id = try AccountsProfile.accountID(try arguments.required("ID"))
      try profile.core.remove(id)
      context.output.report(["id": .string(id.rawValue)]) { "deleted \(id)" }
      return .done
    }
  }
}

/// `cairn accounts select`
enum AccountsSelectCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "select"], summary: "Chooses an account on every device, or none",
    positionals: [AccountsProfile.positional, .required("ID", "the account, or none")],
    options: [.value("slot", "NAME", "which choice, default main")],
    example: "cairn accounts select phone none")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let word = try arguments.required("ID")
      let id = word == "none" ? nil : try AccountsProfile.accountID(word)
      guard let slot = ContextSlot(arguments.value("slot") ?? "main") else {
        throw CommandError.usage("the slot has other characters than a-z, 0-9 and -", remedy: "choose another name")
      }
      try profile.core.select(id, in: slot)
      context.output.report(["selected": JSONValue(id?.rawValue), "slot": .string(slot.rawValue)]) {
        id.map { "selected \($0)" } ?? "selected no account"
      }
      return .done
    }
  }
}
