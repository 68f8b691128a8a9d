import FuzzSupport
import Testing

@testable import CairnCLI

/// Command lines as people and scripts mistype them.
@Suite("Damaged command lines") struct ArgumentFuzzTests {
  private static let sound: [[String]] = [
    ["echo", "a.db", "--loud", "--token", "t", "--table", "x", "--table=y", "--mode", "join", "--seed", "7"],
    ["echo", "--quiet", "a.db", "yes", "--json"], ["user", "add", "anna", "--data", "/srv"], ["user", "list"],
    ["user"], ["help", "echo"], ["--version"], ["echo", "--", "--loud", "-"], ["user", "--help"],
  ]

  @Test("a command line is run, or refused with one sentence and a remedy", .timeLimit(.minutes(10)))
  func lines() throws {
    let harness = CommandLineHarness()
    let words = Self.sound.flatMap { $0 }
    try Fuzz.run("command lines", count: 1_500) { mutator in
      var line = mutator.one(of: Self.sound)
      for _ in 0...mutator.index(3) {
        let place = mutator.index(line.count + 1)
        switch mutator.index(5) {
        case 0: if place < line.count { line.remove(at: place) }
        case 1: line.insert(mutator.one(of: words), at: place)
        case 2: line.insert(mutator.one(of: Mutator.extremes), at: place)
        case 3: line.swapAt(mutator.index(line.count), mutator.index(line.count))
        default: if place < line.count { line[place] = mutator.mutant(of: line[place], others: words) }
        }
        if line.isEmpty { line = ["echo"] }
      }
      return line
    } _: { line in
      let run = harness.run(line)
      switch run.code {
      case .done: try Fuzz.demand(run.messages.isEmpty, "done, with \(run.messages)")
      case .attention: break
      default: try Fuzz.demand(!run.messages.isEmpty || !run.answer.isEmpty, "\(run.code) without a word")
      }
    }
  }

  @Test("every command's declaration takes any words", .timeLimit(.minutes(10)))
  func declarations() throws {
    let declarations = CommandList.all.map { $0.declaration }
    let options = declarations.flatMap(\.options).map { "--" + $0.name }
    try Fuzz.run("arguments", count: 1_500) { mutator -> (command: Int, words: [String]) in
      let command = mutator.index(declarations.count)
      let own = declarations[command].options.map { "--" + $0.name }
      let words = (0..<mutator.index(6)).map { _ in
        let word = mutator.one(of: own + ["x.db", "=", "5", mutator.one(of: options)])
        return mutator.index(3) == 0 ? mutator.mutant(of: word) : word + mutator.one(of: ["", "", "=1", "=", "=x"])
      }
      return (command, words)
    } _: { input in
      guard let error = Self.refusal(input.words, declarations[input.command]) else { return }
      try Fuzz.demand(error.code == .usage && error.message.contains(": "), "\(error)")
    }
  }

  private static func refusal(_ words: [String], _ declaration: CommandDeclaration) -> CommandError? {
    do {
      _ = try ArgumentParser.parse(words, declaration)
      return nil
    } catch { return error }
  }
}
