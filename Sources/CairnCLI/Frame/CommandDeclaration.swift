/// One subcommand of `cairn`. Each lives in a file of its own in `Commands/` and is listed in ``CommandList``.
protocol Command: Sendable {
  static var declaration: CommandDeclaration { get }

  /// Does the work, on the calling thread. Returns how it ended, or throws what went wrong.
  ///
  /// - Parameter arguments: parsed and checked against ``declaration``.
  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode
}

/// What a command accepts. The parser, `--help` and the list of commands read it.
struct CommandDeclaration: Sendable {
  /// The words after `cairn`: `["sync"]`, or `["user", "add"]` for a command in a group.
  var words: [String]
  /// One line for the list of commands, starting with a verb in the third person, without a full stop.
  var summary: String
  /// Paragraphs for `--help`, where the summary is not enough.
  var discussion = ""
  var positionals: [Positional] = []
  var options: [Option] = []
  /// A command line that works, shown by `--help`.
  var example: String

  var name: String { words.joined(separator: " ") }

  struct Positional: Sendable {
    enum Count: Sendable { case one, optional, any }
    var name: String
    var help: String
    var count: Count

    static func required(_ name: String, _ help: String) -> Self { .init(name: name, help: help, count: .one) }
    static func optional(_ name: String, _ help: String) -> Self { .init(name: name, help: help, count: .optional) }
    /// Zero or more; only as the last one.
    static func rest(_ name: String, _ help: String) -> Self { .init(name: name, help: help, count: .any) }
  }

  struct Option: Sendable {
    enum Kind: Sendable {
      case flag
      case value(Value)
    }

    /// What a value must be; the parser refuses others.
    enum Value: Sendable {
      case text
      case integer(ClosedRange<Int>)
      case choice([String])
    }

    /// Without the dashes.
    var name: String
    var kind: Kind
    /// Stands for the value in help: `--data DIR`.
    var placeholder = ""
    var help: String
    var isRequired = false
    var isRepeated = false
    /// Names of options that can't be given together with this one.
    var excludes: [String] = []

    static func flag(_ name: String, _ help: String, excludes: [String] = []) -> Self {
      .init(name: name, kind: .flag, help: help, excludes: excludes)
    }

    static func value(
      _ name: String, _ placeholder: String, _ help: String, required: Bool = false, repeated: Bool = false,
      excludes: [String] = []
    ) -> Self {
      .init(
        name: name, kind: .value(.text), placeholder: placeholder, help: help, isRequired: required,
        isRepeated: repeated, excludes: excludes)
    }

    static func integer(_ name: String, _ placeholder: String, in range: ClosedRange<Int>, _ help: String) -> Self {
      .init(name: name, kind: .value(.integer(range)), placeholder: placeholder, help: help)
    }

    static func choice(_ name: String, _ choices: [String], _ help: String) -> Self {
      .init(name: name, kind: .value(.choice(choices)), placeholder: choices.joined(separator: "|"), help: help)
    }
  }

  /// Every command has these.
  static let commonOptions: [Option] = [
    .flag("json", "print one JSON object on standard output"),
    .flag("help", "show this help"),
  ]

  func option(named name: String) -> Option? {
    (options + Self.commonOptions).first { $0.name == name }
  }
}
