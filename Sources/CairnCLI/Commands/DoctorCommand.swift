import Cairn
import CairnEngine
import CairnRecords
import CairnTables

/// `cairn doctor`
enum DoctorCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["doctor"], summary: "Checks a database file, and says what is wrong and what to do",
    discussion: """
      Checks the file, the schema, the capture triggers, and whether rows and records agree. With --repair it puts \
      capture back, sends rows that were written while capture was off, and brings rows back that were removed \
      meanwhile (for that the server is asked).
      """,
    positionals: [ClientSupport.database], options: [.flag("repair", "repair what can be repaired")],
    example: "cairn doctor notes.db --repair")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let database = try ClientSupport.open(arguments)
      var findings = try database.examine()
      var unreachable: CommandError?
      if arguments.flag("repair") && !findings.isEmpty {
        let cloud = try findings.contains { $0.kind == .missingRows } ? client(database, arguments, context) : nil
        do {
          findings = try database.repair(findings, cloud: cloud)
        } catch let error as CloudError {
          unreachable = CommandError(describing: error)
        }
      }
      report(findings, context)
      if let unreachable { throw unreachable }
      return findings.contains { !$0.isRepaired } ? .failed : .done
    }
  }

  private static func client(
    _ database: SyncedDatabase, _ arguments: Arguments, _ context: CommandContext
  ) throws -> any CloudDatabase {
    let place = try database.place()
    return try ClientSupport.connect(
      place, token: context.token(arguments, server: place.server, identity: place.user),
      tokenChanged: context.tokenKeeper(server: place.server, identity: place.user))
  }

  private static func report(_ findings: [Finding], _ context: CommandContext) {
    context.output.report([
      "ok": .bool(findings.allSatisfy(\.isRepaired)),
      "findings": .array(
        findings.map {
          [
            "kind": .string($0.kind.rawValue), "table": JSONValue($0.table), "count": JSONValue($0.count),
            "text": .string($0.text), "repaired": .bool($0.isRepaired),
          ]
        }),
    ]) {
      if findings.isEmpty { return "nothing is wrong" }
      return findings.map { ($0.isRepaired ? "repaired: " : "") + $0.text }.joined(separator: "\n")
    }
  }
}
