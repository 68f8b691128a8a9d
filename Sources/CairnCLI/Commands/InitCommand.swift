import Cairn
import CairnClient
import CairnEngine
import CairnTables
import Foundation

/// `cairn init`
enum InitCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["init"], summary: "Prepares a database file for sync",
    discussion: """
      Checks the schema, installs capture, and decides what happens with rows that are there: --mode create uploads \
      them, join takes the server's rows (after a backup of yours), merge matches both. Without --mode: create if the \
      zone is empty, join if the tables are.

      The token goes to your configuration folder, never into the file. Run it again to give a new token or to add \
      tables. With another user's token and a --mode the file becomes that user's; what was the first one's is kept in \
      it, and comes back with a token of that one.
      """,
    positionals: [ClientSupport.database],
    options: ownOptions + ClientSupport.placeOptions,
    example: "cairn init notes.db --server https://sync.example.org --token -")

  private static let ownOptions: [CommandDeclaration.Option] = [
    .value("server", "URL", "address of the server", required: true),
    .value("token", "T", "your token; - reads it from standard input; CAIRN_TOKEN is used where it is missing"),
    .value("table", "T", "sync this table; default: all", repeated: true),
    .value("exclude", "T", "leave this table out", repeated: true),
    .value("natural-key", "T", "its INTEGER keys mean the same on every device", repeated: true),
    .choice("mode", Preparation.Mode.allCases.map(\.rawValue), "what happens with existing rows"),
    .value("match-integers", "T", "merge: rows with the same integer are the same row", repeated: true),
    .value("new-integers", "T", "merge: rows with the same integer are different rows", repeated: true),
  ]

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try ClientSupport.run {
      do { return try prepare(arguments, context) } catch let error as TablesError {
        switch error {
        case .schema(let problems): return report(problems, .failed, context)
        case .usage(let problems): return report(problems, .usage, context)
        default: throw error
        }
      }
    }
  }

  private static func prepare(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    let address = try ServerURL(parsing: try arguments.required("server"))
    let place = SyncPlace(
      server: TokenStore.normalized("\(address)"),
      container: arguments.value("container") ?? SyncPlace.defaultContainer,
      environment: arguments.value("environment") ?? SyncPlace.defaultEnvironment,
      zone: arguments.value("zone") ?? SyncPlace.defaultZone, user: "")
    let token = try context.anyToken(arguments, server: place.server)
    let cloud = try ClientSupport.connect(place, token: token)
    let preparation = Preparation(
      try options(arguments, place), cloud: cloud, time: SystemTime(), randomness: SystemRandomness())
    let outcome: Preparation.Outcome
    do {
      outcome = try context.interruption.whileHandling({ cloud.cancel() }) { try run(preparation) }
    } catch {
      // Where the server replaces used tokens, the given one is of no use for another try.
      if cloud.token != token { _ = try context.keepToken(of: cloud, server: place.server) }
      throw error
    }
    _ = try context.keepToken(of: cloud, server: place.server)
    report(outcome, context)
    return .done
  }

  /// Under the file's lock, so that two don't prepare one file. A file that is prepared gets its new token without it:
  /// a watch may hold it (DESIGN section 7).
  private static func run(_ preparation: Preparation) throws -> Preparation.Outcome {
    let path = preparation.options.path
    guard FileManager.default.fileExists(atPath: path) || preparation.options.mode == .join,
      try !preparation.isFinished()
    else { return try preparation.run() }
    return try FileLock.whileHeld(database: path) { try preparation.run() }
  }

  /// A refused schema is one line per problem, and one JSON object (tables 1.1).
  private static func report(_ problems: [SchemaProblem], _ code: ExitCode, _ context: CommandContext) -> ExitCode {
    for problem in problems { context.output.error(CommandError(code, problem.description)) }
    if context.output.isJSON { context.output.report(["problems": .array(problems.map(json))]) { "" } }
    return code
  }

  private static func json(_ problem: SchemaProblem) -> JSONValue {
    [
      "code": .string(problem.code.rawValue), "table": .string(problem.table), "column": JSONValue(problem.column),
      "reason": .string(problem.reason), "remedy": .string(problem.remedy),
    ]
  }

  private static func options(_ arguments: Arguments, _ place: SyncPlace) throws -> Preparation.Options {
    var options = Preparation.Options(
      path: try arguments.required("DB"),
      selection: SelectionOptions(
        tables: arguments.all("table"), exclude: arguments.all("exclude"), naturalKeys: arguments.all("natural-key")),
      mode: arguments.value("mode").flatMap(Preparation.Mode.init(rawValue:)), place: place)
    options.matchIntegers = arguments.all("match-integers")
    options.newIntegers = arguments.all("new-integers")
    return options
  }

  private static func report(_ outcome: Preparation.Outcome, _ context: CommandContext) {
    for warning in outcome.warnings { context.output.warning(warning) }
    context.output.report([
      "mode": outcome.mode.map { .string($0.rawValue) } ?? .null,
      "tables": .array(outcome.tables.map { .string($0) }), "skipped": .array(outcome.skipped.map { .string($0) }),
      "warnings": .array(outcome.warnings.map { .string($0) }), "rows": .integer(Int64(outcome.rows)),
      "backup": outcome.backup.map { .string($0) } ?? .null, "identity": .string(outcome.user),
      "setAside": outcome.setAside.map { .string($0) } ?? .null,
    ]) {
      var lines: [String] = []
      let tables = counted(outcome.tables.count, "table")
      let rows = counted(outcome.rows, "row")
      switch outcome.mode {
      case .create?: lines.append("prepared \(tables) with \(rows) to upload")
      case .join?: lines.append("prepared \(tables); the next sync fills \(outcome.tables.count == 1 ? "it" : "them")")
      case .merge?: lines.append("prepared \(tables) and matched \(rows)")
      case nil: lines.append("already prepared; \(counted(outcome.tables.count, "table is", "tables are")) synced")
      }
      if let owner = outcome.setAside {
        lines.append("what is user \(owner)'s is kept in the file and comes back with a token of that user")
      }
      if let backup = outcome.backup { lines.append("your rows were copied to \(backup)") }
      let skipped = outcome.skipped.filter { !$0.hasPrefix("cairn_") }
      if !skipped.isEmpty { lines.append("left out: \(skipped.joined(separator: ", "))") }
      lines.append("next: cairn sync")
      return lines.joined(separator: "\n")
    }
  }
}
