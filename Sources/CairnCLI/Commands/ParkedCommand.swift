import Cairn
import CairnTables

/// `cairn parked`
enum ParkedCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["parked"], summary: "Shows fetched records that can't be applied now, and why",
    positionals: [ClientSupport.database], options: [.flag("retry", "try all of them again first")],
    example: "cairn parked notes.db --retry")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let database = try ClientSupport.open(arguments, for: arguments.flag("retry") ? .work : .reports)
      if arguments.flag("retry") { try database.retryParked(now: SystemTime().wallClock) }
      let parked = try database.parked()
      context.output.report([
        "parked": .array(
          parked.map {
            [
              "table": .string($0.table), "record": .string($0.record), "reason": .string($0.reason.rawValue),
              "detail": .string($0.detail), "since": .string(ClientSupport.time($0.since)),
            ]
          })
      ]) {
        if parked.isEmpty { return "nothing is parked" }
        var table = TextTable("table", "record", "reason", "since", "detail")
        for record in parked {
          table.add([
            record.table, record.record, record.reason.rawValue, ClientSupport.time(record.since), record.detail,
          ])
        }
        return table.text
      }
      // Without --retry it only reads; with it, it ends like a sync.
      return arguments.flag("retry") && !parked.isEmpty ? .attention : .done
    }
  }
}
