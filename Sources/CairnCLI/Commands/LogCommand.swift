import Cairn
import CairnTables

/// `cairn log`
enum LogCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["log"], summary: "Shows what happened: syncs, merges, parked records, errors; newest last",
    positionals: [ClientSupport.database],
    options: [.integer("limit", "N", in: 1...10_000, "show at most N events, default 100")],
    example: "cairn log notes.db --limit 20")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let events = try ClientSupport.open(arguments, for: .reports).events(limit: arguments.integer("limit") ?? 100)
      context.output.report([
        "events": .array(
          events.map {
            [
              "time": .string(ClientSupport.time($0.time)), "kind": .string($0.kind), "table": JSONValue($0.table),
              "record": JSONValue($0.record), "detail": .string($0.detail),
            ]
          })
      ]) {
        events.map { event in
          let place = [event.table, event.record].compactMap { $0 }.joined(separator: " ")
          return "\(ClientSupport.time(event.time))  \(event.kind)  \(place.isEmpty ? "" : place + "  ")\(event.detail)"
        }.joined(separator: "\n")
      }
      return .done
    }
  }
}
