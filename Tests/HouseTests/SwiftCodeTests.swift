import Testing

/// The tests of this folder are only as good as their reading of Swift.
@Suite struct SwiftCodeTests {
  @Test func commentsAndStringsAreRemoved() {
    let code = SwiftCode.withoutCommentsAndStrings(
      ##"""
      let a = "x // y \(call("try!")) z" // as!
      /* fatalError( /* nested */
      still */ let b = #"a "quoted" \n"# + "\""
      let c = """
        func no() {
        """
      """##)
    #expect(code == "let a = \"\" \n\n let b = \"\" + \"\"\nlet c = \n\n\"\"")
  }

  @Test func importsAreFoundWithAttributes() {
    let found = SwiftCode.imports([
      "import Foundation", "@testable import Cairn", "public import struct CairnRecords.Record",
      "  @preconcurrency import Glibc",
      "let important = 1", "func f() { /* */ }",
    ])
    #expect(found == ["Foundation", "Cairn", "CairnRecords", "Glibc"])
  }

  @Test func wordsAreFoundWhole() {
    let code = "let newUUID() = UUID()\nInt.random(in: a)\nvar x: WireEntry?\n_ = try? f()"
    let found = SourceFile.occurrences(of: ["UUID()", ".random(", "try?"], in: code)
    #expect(found.map(\.line) == [0, 1, 3])
    #expect(found.map(\.word) == ["UUID()", ".random(", "try?"])
  }

  @Test func functionsAreMeasured() {
    let code = """
      protocol P {
        func requirement() throws
        init(a: Int)
        func other() -> Int
      }
      struct S: P {
        func one() {}
        init(
          a: Int, b: () -> Void = {}
        ) throws(E)
        where A: B {
          if a { b() }
          self.init()
        }
        func == (a: S, b: S) -> Bool {
          func inner() {
          }
        }
      }
      """
    #expect(
      SwiftCode.functions(code) == [
        .init(name: "one", first: 7, last: 7), .init(name: "init", first: 8, last: 14),
        .init(name: "==", first: 15, last: 18), .init(name: "inner", first: 16, last: 17),
      ])
  }
}
