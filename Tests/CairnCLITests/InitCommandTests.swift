import CairnSQLite
import Foundation
import Testing

@testable import CairnCLI

@Suite("cairn init on the command line (tables 1.1)")
struct InitCommandTests {
  private let folder: URL
  private let line: CommandLineHarness

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("cairn-init-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    line = CommandLineHarness(variables: ["HOME": folder.path], commands: CommandList.all)
  }

  private func run(_ schema: String, _ more: String...) throws -> CommandLineHarness.Run {
    let path = folder.appendingPathComponent("a.db").path
    try Connection(path: path, mode: .create).execute(schema)
    defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record("\(error)") } }
    // No server listens there: a schema that is refused needs none.
    let words = ["init", path, "--server", "http://127.0.0.1:1", "--token", "t", "--json"] + more
    return line.run(words)
  }

  @Test("TS1 TS2 a refused schema: exit 1, one line per problem, one JSON object with all of them")
  func problems() throws {
    let run = try run(
      "CREATE TABLE p(x); CREATE TABLE n(id INTEGER PRIMARY KEY); CREATE TABLE c(id TEXT PRIMARY KEY, n REFERENCES n)",
      "--exclude", "n")
    #expect(run.code == .failed)
    #expect(run.messages.split(separator: "\n").count == 2)
    #expect(run.answer.split(separator: "\n").count == 1)
    #expect(run.answer.hasPrefix(#"{"problems":[{"code":""#))
    for part in [
      #""code":"noPrimaryKey","table":"p","column":null,"reason":"#,
      #""code":"parentNotSynced","table":"c","column":"n""#,
      #""remedy":"#,
    ] { #expect(run.answer.contains(part), "\(run.answer)") }
  }

  @Test("1.1 a name that is no table: exit 2")
  func noSuchTable() throws {
    let run = try run("CREATE TABLE notes(id TEXT PRIMARY KEY)", "--table", "nots")
    #expect(run.code == .usage)
    #expect(run.answer.contains(#""code":"noSuchTable","table":"nots""#))
    #expect(run.messages.contains("there is no table nots") && run.messages.contains("the tables are notes"))
  }
}
