import Cairn
import CairnTables

/// `cairn status`
enum StatusCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["status"], summary: "Shows what is synced, pending and parked", positionals: [ClientSupport.database],
    example: "cairn status notes.db")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let database = try ClientSupport.open(arguments, for: .reports)
      let status = try database.status()
      let condition = try database.lastCondition()
      context.output.report(json(status, condition)) {
        text(status, condition) + (database.isReadOnly ? "\n" + readOnlyNote : "")
      }
      return .done
    }
  }

  private static let readOnlyNote =
    "the file can't be written to: what programs changed since the last command is counted, not looked at"

  private static func json(_ status: StatusReport, _ state: SyncCondition) -> JSONValue {
    [
      "tables": .array(
        status.tables.map {
          [
            "name": .string($0.name), "rows": JSONValue($0.rows), "pending": JSONValue($0.pending),
            "parked": JSONValue($0.parked),
          ]
        }),
      "pending": JSONValue(status.pending), "parked": JSONValue(status.parked),
      "lastSync": status.lastSync.map { .string(ClientSupport.time($0)) } ?? .null,
      "identity": .string(status.place.user), "state": .string(state.name),
      "reasons": .array(
        status.reasons.map {
          [
            "reason": .string($0.reason.rawValue), "count": JSONValue($0.count),
            "nextAttempt": $0.nextAttempt.map { .string(ClientSupport.time($0)) } ?? .null,
          ]
        }),
      "question": state.question.map { .string($0) } ?? .null, "server": .string(status.place.server),
      "zone": .string(status.place.zone),
      "setAside": .array(
        status.setAside.sorted { $0.key < $1.key }.map {
          ["identity": .string($0.key), "pending": JSONValue($0.value)]
        }),
    ]
  }

  private static func text(_ status: StatusReport, _ state: SyncCondition) -> String {
    var table = TextTable("table", "rows", "pending", "parked")
    for row in status.tables { table.add([row.name, "\(row.rows)", "\(row.pending)", "\(row.parked)"]) }
    var lines = [table.text]
    lines.append("zone \(status.place.zone) on \(status.place.server), user \(status.place.user)")
    lines.append("last sync: \(status.lastSync.map(ClientSupport.time) ?? "never")")
    lines.append("state: \(state.name)")
    for reason in status.reasons where reason.reason != .unsent {
      let next = reason.nextAttempt.map { ", next try \(ClientSupport.time($0))" } ?? ""
      lines.append("\(reason.count) waiting: \(reason.reason.rawValue)\(next)")
    }
    for (user, pending) in status.setAside.sorted(by: { $0.key < $1.key }) {
      lines.append(
        "kept for user \(user): \(counted(pending, "change")) to be sent; cairn init with that user's token brings it back"
      )
    }
    if let question = state.question { lines.append(question) }
    return lines.joined(separator: "\n")
  }
}
