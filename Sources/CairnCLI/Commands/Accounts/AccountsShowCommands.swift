import Cairn
import CairnAccounts

/// `cairn accounts list`
enum AccountsListCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "list"], summary: "Shows the accounts of a profile",
    positionals: [AccountsProfile.positional], example: "cairn accounts list phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let snapshot = profile.core.snapshot
      let selected = snapshot.choices[.main]
      var rows: [(Account, CredentialNeed)] = []
      for account in snapshot.accounts { rows.append((account, try profile.core.needsCredentials(account.id))) }
      context.output.report([
        "accounts": .array(rows.map { json($0.0, $0.1, isSelected: $0.0.id == selected) }),
        "choices": .object(
          snapshot.choices.sorted { $0.key < $1.key }.map {
            .init(key: $0.key.rawValue, value: .string($0.value.rawValue))
          }),
        "unpublishedDeletions": .array(snapshot.unpublishedDeletions.sorted().map { .string($0.rawValue) }),
      ]) { text(rows, selected) }
      return .done
    }
  }

  private static func json(_ account: Account, _ need: CredentialNeed, isSelected: Bool) -> JSONValue {
    [
      "id": .string(account.id.rawValue), "instance": .string(account.instanceURL),
      "user": JSONValue(account.userName), "migrated": .bool(account.isMigrated),
      "needsCredentials": need == .unknown ? .null : .bool(need == .yes), "selected": .bool(isSelected),
      "label": JSONValue(account.label), "instanceID": .string(account.instanceID.rawValue),
      "service": .string(account.service),
    ]
  }

  private static func text(_ rows: [(Account, CredentialNeed)], _ selected: AccountID?) -> String {
    guard !rows.isEmpty else { return "no accounts" }
    var table = TextTable("", "id", "user", "instance", "label", "sign in")
    for (account, need) in rows {
      let badge =
        switch need {
        case .no: ""
        case .yes: "needed"
        case .unknown: "unknown"
        }
      table.add([
        account.id == selected ? "*" : "", account.id.rawValue, account.userName ?? "", account.instanceURL,
        account.label ?? "", badge,
      ])
    }
    return table.text
  }
}

/// `cairn accounts status`
enum AccountsStatusCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "status"], summary: "Shows what of a profile is pending and parked",
    positionals: [AccountsProfile.positional], example: "cairn accounts status phone")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let profile = try AccountsProfile.open(arguments)
      let status = try profile.core.status()
      let user = try profile.user()
      let state = status.isPaused ? "paused" : status.lastState ?? "ready"
      context.output.report([
        "pending": JSONValue(status.pending), "parked": JSONValue(status.parked),
        "lastSync": status.lastSync.map { .string(ClientSupport.time($0)) } ?? .null, "identity": JSONValue(user),
        "state": .string(state), "enabled": .bool(status.isEnabled), "server": .string(profile.place.server),
        "zone": .string(profile.place.zone),
        "reasons": .object(
          status.waiting.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .string($0.value)) }),
      ]) {
        var lines = [
          "user \(user ?? "nobody") on \(profile.place.server), zone \(profile.place.zone)",
          "pending: \(status.pending)", "parked: \(status.parked)",
          "last sync: \(status.lastSync.map(ClientSupport.time) ?? "never")", "state: \(state)",
        ]
        if !status.isEnabled { lines.append("accounts are switched off: cairn accounts enable") }
        for (name, reason) in status.waiting.sorted(by: { $0.key < $1.key }) {
          lines.append("\(name) waits: \(reason)")
        }
        return lines.joined(separator: "\n")
      }
      return .done
    }
  }
}
