import Testing

/// Words that mean unfinished or unsafe code.
@Suite struct WordTests {
  @Test func nothingIsLeftForLater() {
    let banned = ["TODO", "FIXME", "XXX", "HACK", "for now", "not implemented", "not yet implemented", "unimplemented"]
    for file in SourceTree.swiftFiles where file.name != "WordTests.swift" {
      for (line, word) in SourceFile.occurrences(of: banned, in: file.text) {
        Issue.record("\(file.path):\(line + 1) says \(word): do it, or write it down as an issue")
      }
    }
  }

  /// The reason stands in a comment, on the line or in the lines above it.
  @Test func unsafeConstructsHaveAReason() {
    let banned = [
      "try!", "as!", "fatalError(", "@unchecked Sendable", "nonisolated(unsafe)", "unowned(unsafe)", "unsafeBitCast(",
      "try?",
    ]
    var unused = Exceptions.withoutReason
    for file in SourceTree.sources {
      let lines = file.lines
      for (line, word) in SourceFile.occurrences(of: banned, in: file.code) where !Self.hasReason(lines, line) {
        let name = "\(file.path): \(word)"
        if unused.remove(name) == nil, !Exceptions.withoutReason.contains(name) {
          Issue.record("\(file.path):\(line + 1) uses \(word) without a comment that says why it is right")
        }
      }
    }
    #expect(unused.isEmpty, "take these off Exceptions.withoutReason")
  }

  /// A pointer that leaves the closure that lends it points to what may be freed.
  @Test func lentPointersStayInTheirClosure() throws {
    let lends = /\.with(Unsafe\w*|CString|UTF8|Bytes|Contiguous\w*)\s*(\([^()]*\)\s*)?/
    let escapes = /\{\s*((\w+)\s+in\s+)?(return\s+)?(\$0|\2)(\.baseAddress[!?]?)?\s*\}/
    for file in SourceTree.swiftFiles where file.code.contains(".with") {
      for call in file.code.ranges(of: lends)
      where file.code[call.upperBound...].prefixMatch(of: escapes) != nil {
        let line = file.code[..<call.lowerBound].count { $0 == "\n" } + 1
        Issue.record("\(file.path):\(line) takes a lent pointer out of its closure")
      }
    }
  }

  /// Waiting for time makes tests slow and unsure: use a manual clock, or wait for a condition.
  @Test func testsDoNotSleep() {
    let banned = ["Task.sleep", "usleep(", "nanosleep(", "Thread.sleep", "sleep("]
    for file in SourceTree.swiftFiles where file.path.hasPrefix("Tests/") {
      let lines = file.lines
      for (line, _) in SourceFile.occurrences(of: banned, in: file.code) where !Self.hasReason(lines, line) {
        Issue.record("\(file.path):\(line + 1) sleeps")
      }
    }
  }

  /// Libraries return what they have to say.
  @Test func librariesDoNotPrint() {
    for file in SourceTree.sources {
      for (line, _) in SourceFile.occurrences(of: ["print(", "debugPrint(", "NSLog("], in: file.code) {
        Issue.record("\(file.path):\(line + 1) prints: return it, or use Output in the command line")
      }
    }
  }

  private static func hasReason(_ lines: [String], _ index: Int) -> Bool {
    if lines[index].contains("//") { return true }
    // A declaration may have attributes or other lines of its own between the comment and the word.
    return lines[max(0, index - 3)..<index].contains { $0.drop(while: \.isWhitespace).hasPrefix("//") }
  }
}
