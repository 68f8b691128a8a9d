import Cairn
import CairnEngine
import CairnTables

/// `cairn decide`
enum DecideCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["decide"], summary: "Answers a question that Cairn asked",
    discussion: """
      keepLocal: rows stay, nothing is synced. deleteLocal: rows go (after a backup), then the zone's are taken. \
      recreateAndReupload: the zone is made again and filled from here. deleteMissing: rows that were removed while \
      capture was off are deleted everywhere.
      """,
    positionals: [ClientSupport.database, .required("ANSWER", (answers).joined(separator: ", "))],
    example: "cairn decide notes.db recreateAndReupload")

  private static let answers = ZoneLossAnswer.allCases.map(\.rawValue) + ["deleteMissing"]

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      let word = try arguments.required("ANSWER")
      guard answers.contains(word) else {
        throw CommandError.usage("\(word) is no answer", remedy: "use \(answers.joined(separator: ", "))")
      }
      let database = try ClientSupport.open(arguments)
      if word == "deleteMissing" {
        let count = try database.deleteMissing()
        context.output.report(["deleted": JSONValue(count)]) {
          "\(counted(count, "row is", "rows are")) deleted with the next sync"
        }
        return .done
      }
      guard try database.lastCondition().name == "decision" else {
        throw CommandError(.failed, "nothing is asked of \(try arguments.required("DB"))", remedy: "see cairn status")
      }
      // The engine, this process's or the one that watches, takes the answer with its next sync.
      try database.leaveAnswer(word)
      context.output.report(["answer": .string(word)]) { "\(word): the next sync acts on it" }
      return .done
    }
  }
}
