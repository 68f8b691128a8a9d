import Foundation
import Testing

@testable import CairnCLI

/// DESIGN section 7: names, options, exit codes and messages.
@Suite struct CommandLineTests {
  let line = CommandLineHarness()

  @Test func optionsAndPositionalsComeInAnyOrder() {
    let run = line.run("echo", "--table", "a", "notes.db", "--table=b", "--json", "--loud", "yes")
    #expect(run.code == .done)
    #expect(
      run.answer
        == #"{"file":"notes.db","answer":"yes","tables":["a","b"],"loud":true,"token":null}"# + "\n")
    #expect(run.messages.isEmpty)
  }

  @Test func withoutJSONTheAnswerIsText() {
    #expect(line.run("echo", "notes.db").answer == "notes.db \n")
  }

  @Test func wordsAfterTwoDashesArePositional() {
    let run = line.run("echo", "--", "--json")
    #expect(run.code == .done)
    #expect(run.answer == "--json \n")
  }

  @Test(arguments: [
    (["echo"], "cairn echo needs DB, the database file: see cairn echo --help"),
    (["echo", "a", "b", "c"], "unexpected argument c: see cairn echo --help"),
    (["echo", "a", "--lout"], "unknown option --lout: did you mean --loud? see cairn echo --help"),
    (["echo", "a", "-x"], "unknown option -x: see cairn echo --help"),
    (["echo", "a", "--table"], "--table needs a value: give it as --table TABLE"),
    (["echo", "a", "--table", "--loud"], "--table needs a value: give it as --table TABLE"),
    (["echo", "a", "--loud=1"], "--loud takes no value: see cairn echo --help"),
    (["echo", "a", "--mode", "x"], "--mode x is unknown: use create, join"),
    (["echo", "a", "--mode", "join", "--mode", "join"], "--mode is given twice: give it once"),
    (["echo", "a", "--seed", "101"], "--seed 101 is not a number from 0 to 100: see cairn echo --help"),
    (["echo", "a", "--loud", "--quiet"], "--loud and --quiet exclude each other: give one of them"),
    (["echo", "a", "--token="], "--token is empty: see cairn echo --help"),
    (["ecko"], "unknown command ecko: did you mean echo? cairn help lists the commands"),
    (["user", "ad", "anna"], "unknown command user ad: did you mean user add? cairn user lists its commands"),
    (["user", "add", "anna"], "--data is missing: give it as --data DIR"),
    (["help", "nothing"], "unknown command nothing: cairn help lists the commands"),
  ])
  func wrongUsageIsOneSentenceWithARemedy(words: [String], message: String) {
    for json in [[], ["--json"]] {
      let answer = MemorySink()
      let messages = MemorySink()
      let tool = CommandLineTool(
        environment: .init(
          variables: [:], answer: answer, messages: messages, interruption: Interruption(), readInput: { nil }),
        commands: line.commands)
      #expect(tool.run(words + json) == .usage)
      #expect(messages.text == "cairn: \(message)\n")
      #expect(answer.text.isEmpty)
    }
  }

  @Test func commandsInGroupsAreFound() {
    let run = line.run("user", "add", "anna", "--data", "/srv")
    #expect(run == .init(code: .attention, answer: "added anna in /srv\n", messages: ""))
  }

  @Test func errorsAreOneLineOnStandardError() {
    let run = line.run("echo", "fail.db", "--json")
    #expect(run == .init(code: .unreachable, answer: "", messages: "cairn: the line is cut: wait\n"))
  }

  @Test func withoutACommandTheOverviewGoesToStandardError() {
    let run = line.run()
    #expect(run.code == .usage)
    #expect(run.answer.isEmpty)
    #expect(run.messages.contains("  user add   adds a user\n"))
  }

  @Test(arguments: [["help"], ["--help"], ["-h"]])
  func helpIsAnAnswer(words: [String]) {
    let run = words.count == 1 ? line.run(words[0]) : line.run()
    #expect(run.code == .done)
    #expect(run.answer.contains("usage: cairn COMMAND"))
  }

  @Test func helpOfACommandShowsOptionsAndExample() {
    for run in [line.run("echo", "--help"), line.run("help", "echo"), line.run("echo", "-h", "a", "b", "c")] {
      #expect(run.code == .done)
      #expect(run.answer.hasPrefix("usage: cairn echo DB [ANSWER] [--loud] [--quiet] [--token T] [--table TABLE]…"))
      #expect(run.answer.contains("example: cairn echo notes.db --loud\n"))
    }
  }

  @Test func aGroupAloneListsItsCommands() {
    let run = line.run("user")
    #expect(run.code == .usage)
    #expect(
      run.messages
        == "usage: cairn user COMMAND\n\n  cairn user add   adds a user\n  cairn user list  lists the users\n")
    #expect(line.run("user", "--help").answer == run.messages)
  }

  @Test func longHelpIsWrapped() {
    let word = "eleven-long"
    let text = HelpText.wrapped(Array(repeating: word, count: 20).joined(separator: " ") + "\n\nshort")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 96 })
    #expect(text.hasSuffix("\n\nshort"))
    #expect(text.filter { !$0.isWhitespace } == String(repeating: word, count: 20) + "short")
  }

  @Test func versionIsPrinted() {
    #expect(line.run("--version").answer == "cairn \(Version.current)\n")
    #expect(line.run("--version", "--json").answer == #"{"version":"\#(Version.current)"}"# + "\n")
  }

  @Test func everyCommandHasAnExampleAndUniqueOptions() throws {
    for command in CommandList.all {
      let declaration = command.declaration
      #expect(declaration.example.hasPrefix("cairn \(declaration.name)"))
      #expect(!declaration.summary.hasSuffix("."))
      let names = declaration.options.map(\.name) + CommandDeclaration.commonOptions.map(\.name)
      #expect(Set(names).count == names.count, "\(declaration.name)")
      for excluded in declaration.options.flatMap(\.excludes) { #expect(names.contains(excluded)) }
    }
    #expect(Set(CommandList.all.map { $0.declaration.name }).count == CommandList.all.count)
  }
}
