import Foundation

@testable import CairnCLI

/// Runs command lines in the test's own process and keeps what they print.
struct CommandLineHarness {
  struct Run: Equatable {
    var code: ExitCode
    var answer: String
    var messages: String
  }

  var variables: [String: String] = ["HOME": "/nonexistent"]
  var commands: [any Command.Type] = [EchoCommand.self, AddCommand.self, ListCommand.self]
  var input: [String] = []

  func run(_ words: String...) -> Run { run(words) }

  func run(_ words: [String]) -> Run {
    let answer = MemorySink()
    let messages = MemorySink()
    let line = input.first
    let tool = CommandLineTool(
      environment: .init(
        variables: variables, answer: answer, messages: messages, terminal: nil, interruption: Interruption(),
        readInput: { line }),
      commands: commands)
    let code = tool.run(words)
    return Run(code: code, answer: answer.text, messages: messages.text)
  }
}

/// Prints what it was given.
enum EchoCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["echo"], summary: "prints its arguments",
    positionals: [.required("DB", "the database file"), .optional("ANSWER", "an answer")],
    options: [
      .flag("loud", "in capitals", excludes: ["quiet"]), .flag("quiet", "in small letters"),
      .value("token", "T", "the token"), .value("table", "TABLE", "a table", repeated: true),
      .choice("mode", ["create", "join"], "what to do"), .integer("seed", "N", in: 0...100, "the seed"),
    ],
    example: "cairn echo notes.db --loud")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    let file = try arguments.required("DB")
    if file == "fail.db" { throw CommandError(.unreachable, "the line\nis cut", remedy: "wait") }
    let tables = arguments.all("table")
    try context.output.report([
      "file": .string(file), "answer": JSONValue(arguments.optional("ANSWER")), "tables": JSONValue(tables),
      "loud": .bool(arguments.flag("loud")), "token": JSONValue(context.givenToken(arguments)),
    ]) { "\(file) \(tables.joined(separator: ","))" }
    return .done
  }
}

enum AddCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["user", "add"], summary: "adds a user", positionals: [.required("NAME", "the user's name")],
    options: [.value("data", "DIR", "the server's folder", required: true)],
    example: "cairn user add anna --data /srv/cairn")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    context.output.line("added \(try arguments.required("NAME")) in \(try arguments.required("data"))")
    return .attention
  }
}

enum ListCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["user", "list"], summary: "lists the users", example: "cairn user list")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode { .done }
}
