import Foundation
import Testing

/// Documentation that points at things which exist.
@Suite struct PageTests {
  @Test func linksLeadSomewhere() {
    for page in SourceTree.pages {
      let folder = page.path.split(separator: "/").dropLast().map { $0 + "/" }.joined()
      for target in Self.links(page.text) where !target.contains("://") && !target.hasPrefix("#") {
        let path = target.split(separator: "#").first.map(String.init) ?? target
        #expect(SourceTree.exists(folder + path), "\(page.path) links to \(target)")
      }
    }
  }

  /// A path in backticks that starts with a folder of this repository is a file of it.
  @Test func namedFilesExist() {
    let folders = ["Sources/", "Tests/", "scripts/", "docs/", ".ci/"]
    for page in SourceTree.pages {
      let pieces = page.text.split(separator: "`", omittingEmptySubsequences: false)
      for (index, piece) in pieces.enumerated() where index % 2 == 1 {
        let path = String(piece.prefix { !" \n".contains($0) })
        guard folders.contains(where: path.hasPrefix), !path.contains("*"), !path.contains("{") else { continue }
        #expect(SourceTree.exists(path), "\(page.path) names \(path)")
      }
    }
  }

  @Test func decisionsAreNumberedWithoutGaps() {
    let numbers = SourceTree.paths(in: "docs/decisions", suffix: ".md").compactMap { Int($0.dropFirst(15).prefix(4)) }
    #expect(!numbers.isEmpty)
    #expect(numbers == Array(1...max(1, numbers.count)))
  }

  @Test func everySpecificationSaysWhatIsBuilt() {
    for page in SourceTree.pages where page.path.hasPrefix("docs/spec/") {
      let hasStatus = page.lines.prefix(12).contains { $0.contains("Status:") }
      #expect(hasStatus, "\(page.path) does not say at its top what is built")
    }
  }

  /// The targets of Markdown links, code blocks left out.
  static func links(_ text: String) -> [String] {
    var isCode = false
    var found: [String] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("```") { isCode.toggle() }
      guard !isCode else { continue }
      for part in line.components(separatedBy: "](").dropFirst() {
        if let target = part.split(separator: ")", omittingEmptySubsequences: false).first, !target.isEmpty {
          found.append(String(target))
        }
      }
    }
    return found
  }
}
