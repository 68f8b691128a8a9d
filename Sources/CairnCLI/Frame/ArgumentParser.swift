/// Reads the words of one command by its declaration.
///
/// `--name value`, `--name=value` and `--flag`; options and positionals in any order; everything after `--` is
/// positional. A single `-` is a value (standard input). A value that starts with `--` is given as `--name=value`.
struct ArgumentParser {
  private let declaration: CommandDeclaration
  private var result = Arguments()
  private var positionals: [String] = []

  static func parse(_ words: [String], _ declaration: CommandDeclaration) throws(CommandError) -> Arguments {
    var parser = ArgumentParser(declaration: declaration)
    try parser.read(words)
    if parser.result.flag("help") { return parser.result }
    try parser.assignPositionals()
    try parser.checkOptions()
    return parser.result
  }

  private init(declaration: CommandDeclaration) { self.declaration = declaration }

  private var remedy: String { "see cairn \(declaration.name) --help" }

  private mutating func read(_ words: [String]) throws(CommandError) {
    var index = words.startIndex
    while index < words.endIndex {
      let word = words[index]
      index += 1
      if word == "--" {
        positionals += words[index...]
        return
      }
      if word == "-h" {
        result.flags.insert("help")
      } else if word.hasPrefix("--") {
        try readOption(word.dropFirst(2), words, &index)
      } else if word.hasPrefix("-"), word != "-", Int(word) == nil {
        throw .usage(
          "unknown option \(word)", remedy: word.contains(".") ? "write ./\(word) for a file of that name" : remedy)
      } else {
        positionals.append(word)
      }
    }
  }

  private mutating func readOption(_ word: Substring, _ words: [String], _ index: inout Int) throws(CommandError) {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let name = parts[0]
    guard let option = declaration.option(named: name) else {
      let names = (declaration.options + CommandDeclaration.commonOptions).map(\.name)
      let hint = Spelling.closest(to: name, in: names).map { "did you mean --\($0)? " } ?? ""
      throw .usage("unknown option --\(name)", remedy: hint + remedy)
    }
    guard case .value(let kind) = option.kind else {
      guard parts.count == 1 else { throw .usage("--\(name) takes no value", remedy: remedy) }
      result.flags.insert(name)
      return
    }
    let value: String
    if parts.count == 2 {
      value = parts[1]
    } else if index < words.endIndex, !words[index].hasPrefix("--") {
      value = words[index]
      index += 1
    } else {
      throw .usage("--\(name) needs a value", remedy: "give it as --\(name) \(option.placeholder)")
    }
    try check(value, kind, name)
    if !option.isRepeated, result.values[name] != nil {
      throw .usage("--\(name) is given twice", remedy: "give it once")
    }
    result.values[name, default: []].append(value)
  }

  private func check(_ value: String, _ kind: CommandDeclaration.Option.Value, _ name: String) throws(CommandError) {
    switch kind {
    case .text:
      if value.isEmpty { throw .usage("--\(name) is empty", remedy: remedy) }
    case .integer(let range):
      guard let number = Int(value), range.contains(number) else {
        throw .usage(
          "--\(name) \(value) is not a number from \(range.lowerBound) to \(range.upperBound)", remedy: remedy)
      }
    case .choice(let choices):
      guard choices.contains(value) else {
        throw .usage("--\(name) \(value) is unknown", remedy: "use \(choices.joined(separator: ", "))")
      }
    }
  }

  private mutating func assignPositionals() throws(CommandError) {
    var left = positionals[...]
    for positional in declaration.positionals {
      switch positional.count {
      case .one:
        guard let word = left.popFirst() else {
          throw .usage("cairn \(declaration.name) needs \(positional.name), \(positional.help)", remedy: remedy)
        }
        guard !word.isEmpty else { throw .usage("\(positional.name) is empty", remedy: remedy) }
        result.positionals[positional.name] = [word]
      case .optional:
        if let word = left.popFirst() { result.positionals[positional.name] = [word] }
      case .any:
        result.positionals[positional.name] = Array(left)
        left = []
      }
    }
    if let extra = left.first { throw .usage("unexpected argument \(extra)", remedy: remedy) }
  }

  private func checkOptions() throws(CommandError) {
    let given = result.flags.union(result.values.keys)
    for option in declaration.options {
      if option.isRequired, !given.contains(option.name) {
        throw .usage("--\(option.name) is missing", remedy: "give it as --\(option.name) \(option.placeholder)")
      }
      if given.contains(option.name), let other = option.excludes.first(where: given.contains) {
        throw .usage("--\(option.name) and --\(other) exclude each other", remedy: "give one of them")
      }
    }
  }
}
