import Foundation

/// Finds the command that the words name, parses its arguments, runs it and turns errors into messages and exit codes.
struct CommandLineTool: Sendable {
  /// What the process gives the tool; tests give their own.
  struct Environment: Sendable {
    var variables: [String: String]
    var answer: any TextSink
    var messages: any TextSink
    var terminal: Terminal?
    var interruption: Interruption
    var readInput: @Sendable () -> String?

    /// That of this process.
    static func process(interruption: Interruption) -> Environment {
      let variables = ProcessInfo.processInfo.environment
      return Environment(
        variables: variables, answer: DescriptorSink(descriptor: STDOUT_FILENO),
        messages: DescriptorSink(descriptor: STDERR_FILENO),
        terminal: Terminal.behind(STDERR_FILENO, environment: variables), interruption: interruption,
        readInput: { readLine(strippingNewline: true) })
    }
  }

  var environment: Environment
  var commands: [any Command.Type] = CommandList.all

  /// Runs one command line, without the program's name.
  func run(_ words: [String]) -> ExitCode {
    // Known before the rest is understood, because errors of usage are printed too.
    let output = output(json: words.prefix { $0 != "--" }.contains("--json"))
    do {
      let code = try dispatch(words, output)
      guard let failure = output.failure else { return code }
      output.error(failure)
      return failure.code
    } catch {
      let described = CommandError(describing: error)
      output.error(described)
      return described.code
    }
  }

  private func dispatch(_ words: [String], _ output: Output) throws -> ExitCode {
    let words = words.first == "--json" ? Array(words.dropFirst()) + ["--json"] : words
    switch words.first {
    case nil, "--json":
      output.message(HelpText.overview(commands))
      return .usage
    case "help", "--help", "-h": return try help(Array(words.dropFirst()).filter { $0 != "--json" }, output)
    case "--version", "version":
      output.report(["version": .string(Version.current)]) { "cairn \(Version.current)" }
      return .done
    case let word?:
      let (command, rest) = try find(words)
      guard let command else { return group(word, rest, output) }
      return try run(command, rest, output)
    }
  }

  private func run(_ command: any Command.Type, _ words: [String], _ output: Output) throws -> ExitCode {
    let arguments = try ArgumentParser.parse(words, command.declaration)
    if arguments.flag("help") {
      show(HelpText.command(command.declaration), output)
      return .done
    }
    // `--json` after `--` is a positional, which only the parser knows.
    let context = CommandContext(
      output: output.isJSON == arguments.flag("json") ? output : self.output(json: arguments.flag("json")),
      environment: environment.variables, interruption: environment.interruption, readInput: environment.readInput)
    return try command.run(arguments, context)
  }

  private func output(json: Bool) -> Output {
    Output(json: json, answer: environment.answer, messages: environment.messages, terminal: environment.terminal)
  }

  // MARK: Finding commands

  /// The command that the first words name and the words after it; no command when they name a group.
  private func find(_ words: [String]) throws(CommandError) -> ((any Command.Type)?, [String]) {
    let matching = commands.filter { words.starts(with: $0.declaration.words) }
    if let command = matching.max(by: { $0.declaration.words.count < $1.declaration.words.count }) {
      return (command, Array(words.dropFirst(command.declaration.words.count)))
    }
    let members = commands.filter { $0.declaration.words.first == words[0] }
    let rest = Array(words.dropFirst())
    guard !members.isEmpty else {
      throw unknown(words[0], among: commands.map { $0.declaration.words[0] }, remedy: "cairn help lists the commands")
    }
    let named = words.prefix { !$0.hasPrefix("-") }
    if members.contains(where: { $0.declaration.words.starts(with: named) }) { return (nil, rest) }
    let word = rest.first { !$0.hasPrefix("-") } ?? ""
    throw unknown(
      "\(words[0]) \(word)", among: members.map { $0.declaration.name }, remedy: "cairn \(words[0]) lists its commands")
  }

  private func unknown(_ name: String, among names: [String], remedy: String) -> CommandError {
    let hint = Spelling.closest(to: name, in: names).map { "did you mean \($0)? " } ?? ""
    return .usage("unknown command \(name)", remedy: hint + remedy)
  }

  // MARK: Help

  private func help(_ words: [String], _ output: Output) throws -> ExitCode {
    guard let word = words.first(where: { !$0.hasPrefix("-") }) else {
      show(HelpText.overview(commands), output)
      return .done
    }
    let (command, _) = try find(words)
    show(
      command.map { HelpText.command($0.declaration) } ?? HelpText.group(word, members(word)), output)
    return .done
  }

  /// A group without a command: its commands, as help where that was asked, else as an error of usage.
  private func group(_ word: String, _ words: [String], _ output: Output) -> ExitCode {
    let text = HelpText.group(word, members(word))
    if words.contains("--help") || words.contains("-h") {
      show(text, output)
      return .done
    }
    output.message(text)
    return .usage
  }

  private func members(_ word: String) -> [any Command.Type] {
    commands.filter { $0.declaration.words.first == word }
  }

  private func show(_ text: String, _ output: Output) {
    output.report(["help": .string(text)]) { text }
  }
}
