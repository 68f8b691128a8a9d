import Cairn
import CairnSQLite
import CairnTables

/// `cairn alter`
enum AlterCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["alter"], summary: "Changes the schema where SQLite refuses because of capture",
    discussion: """
      SQLite refuses to drop a column that a trigger names. This command takes capture out, runs your statements and \
      puts capture back, in one transaction. Columns that you drop here keep their values on other devices.
      """,
    positionals: [ClientSupport.database, .required("SQL", "one or more statements")],
    example: "cairn alter notes.db \"ALTER TABLE notes DROP COLUMN color\"")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let path = try arguments.required("DB")
      do {
        try SyncedDatabase(path: path, time: SystemTime(), randomness: SystemRandomness())
          .alter(arguments.required("SQL"))
      } catch let error as SQLiteError where !error.isBusy {
        throw CommandError(
          .failed, "SQLite refuses: \(error.message)", remedy: "nothing was changed; correct the statement")
      }
      // Opening takes up what has changed.
      let status = try SyncedDatabase(path: path, time: SystemTime(), randomness: SystemRandomness()).status()
      context.output.report([
        "tables": .array(status.tables.map { .string($0.name) }), "pending": JSONValue(status.pending),
      ]) { "done; \(counted(status.tables.count, "table is", "tables are")) synced" }
      return .done
    }
  }
}
