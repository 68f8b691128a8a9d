import Testing

/// DESIGN section 4, "Size".
@Suite struct SizeTests {
  private static let warning = 400
  private static let codeLimit = 600
  private static let functionLimit = 70

  @Test func filesHaveOneJob() {
    for file in SourceTree.swiftFiles {
      let code = file.codeLines.filter { !$0.allSatisfy(\.isWhitespace) }.count
      #expect(code <= Self.codeLimit, "\(file.path) has \(code) lines of code, the limit is \(Self.codeLimit)")
      let lines = file.lines.count
      guard lines > Self.warning else { continue }
      guard let known = Exceptions.largeFiles[file.path] else {
        Issue.record("\(file.path) has \(lines) lines: split it by job")
        continue
      }
      #expect(lines <= known, "\(file.path) grew from \(known) to \(lines) lines: split it by job")
    }
  }

  @Test func theListOfLargeFilesOnlyShrinks() {
    for path in Exceptions.largeFiles.keys.sorted() {
      let lines = SourceTree.swiftFiles.first { $0.path == path }?.lines.count ?? 0
      #expect(lines > Self.warning, "\(path) has \(lines) lines now: take it off Exceptions.largeFiles")
    }
  }

  @Test func functionsFitOnAScreen() {
    var unused = Exceptions.longFunctions
    for file in SourceTree.swiftFiles {
      for function in SwiftCode.functions(file.code) where function.lineCount > Self.functionLimit {
        let name = "\(file.path): \(function.name)"
        if unused.remove(name) == nil, !Exceptions.longFunctions.contains(name) {
          Issue.record("\(file.path):\(function.first) \(function.name) has \(function.lineCount) lines: split it")
        }
      }
    }
    #expect(unused.isEmpty, "take these off Exceptions.longFunctions")
  }

  @Test func theReadmeStaysShort() {
    #expect(SourceTree.text(of: "README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 150)
  }
}
