import Cairn
import CairnTables

/// `cairn deinit`
enum DeinitCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["deinit"], summary: "Removes Cairn from a database file; your tables stay as they are",
    positionals: [ClientSupport.database], example: "cairn deinit notes.db")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let path = try arguments.required("DB")
      let unsent = try FileLock.whileHeld(database: path) { try Deinstallation.run(path: path) }
      context.output.report(["unsent": JSONValue(unsent)]) {
        "removed Cairn from \(path)"
          + (unsent > 0 ? "; \(counted(unsent, "change was", "changes were")) never sent" : "")
      }
      return .done
    }
  }
}
