/// The texts of `cairn`, `cairn help` and `cairn COMMAND --help`.
enum HelpText {
  static func overview(_ commands: [any Command.Type]) -> String {
    let width = commands.map { $0.declaration.name.count }.max() ?? 0
    let lines = commands.map { "  \(pad($0.declaration.name, width))  \($0.declaration.summary)" }
    return """
      cairn keeps SQLite databases in sync between devices.

      usage: cairn COMMAND [ARGUMENTS] [--json] [--help]

      \(lines.joined(separator: "\n"))

      cairn COMMAND --help shows a command's options and an example.

      """
  }

  /// The commands of a group, for `cairn user`.
  static func group(_ word: String, _ commands: [any Command.Type]) -> String {
    let width = commands.map { $0.declaration.name.count }.max() ?? 0
    let lines = commands.map { "  cairn \(pad($0.declaration.name, width))  \($0.declaration.summary)" }
    return "usage: cairn \(word) COMMAND\n\n\(lines.joined(separator: "\n"))\n"
  }

  static func command(_ declaration: CommandDeclaration) -> String {
    var text = "\(usage(declaration))\n\n\(declaration.summary).\n"
    if !declaration.discussion.isEmpty { text += "\n\(wrapped(declaration.discussion))\n" }
    let options = declaration.options + CommandDeclaration.commonOptions
    let rows = declaration.positionals.map { ($0.name, $0.help) } + options.map { (label($0), help($0)) }
    let width = min(28, rows.map { $0.0.count }.max() ?? 0)
    text += "\n"
    for (name, help) in rows {
      text += name.count > width ? "  \(name)\n  \(pad("", width))  \(help)\n" : "  \(pad(name, width))  \(help)\n"
    }
    return text + "\nexample: \(declaration.example)\n"
  }

  private static func usage(_ declaration: CommandDeclaration) -> String {
    var words = ["usage: cairn", declaration.name]
    for positional in declaration.positionals {
      switch positional.count {
      case .one: words.append(positional.name)
      case .optional: words.append("[\(positional.name)]")
      case .any: words.append("[\(positional.name)]…")
      }
    }
    for option in declaration.options {
      let one = option.isRequired ? label(option) : "[\(label(option))]"
      words.append(option.isRepeated ? one + "…" : one)
    }
    return words.joined(separator: " ")
  }

  private static func label(_ option: CommandDeclaration.Option) -> String {
    option.placeholder.isEmpty ? "--\(option.name)" : "--\(option.name) \(option.placeholder)"
  }

  private static func help(_ option: CommandDeclaration.Option) -> String {
    option.isRepeated ? "\(option.help) (may be given more than once)" : option.help
  }

  /// Paragraphs in lines of at most 96 characters, where a word is not longer.
  static func wrapped(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { paragraph in
      var lines: [String] = []
      for word in paragraph.split(separator: " ") {
        if let last = lines.last, last.count + 1 + word.count <= 96 {
          lines[lines.count - 1] = "\(last) \(word)"
        } else {
          lines.append(String(word))
        }
      }
      return lines.joined(separator: "\n")
    }.joined(separator: "\n")
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
