import Foundation
import Testing

/// The files of this repository, as these tests read them.
enum SourceTree {
  /// The repository's folder, with a slash at its end.
  static let root: String = {
    var url = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { url.deleteLastPathComponent() }
    return url.path + "/"
  }()

  /// Swift files of `Sources/` and `Tests/`, sorted by path.
  static let swiftFiles: [SourceFile] = ["Sources", "Tests"].flatMap { folder in
    paths(in: folder, suffix: ".swift").map { SourceFile(path: $0, text: text(of: $0)) }
  }

  static let sources: [SourceFile] = swiftFiles.filter { $0.path.hasPrefix("Sources/") }

  /// Markdown files of the repository, the top folder included.
  static let pages: [SourceFile] =
    (paths(in: "docs", suffix: ".md") + topFiles(suffix: ".md")).map { SourceFile(path: $0, text: text(of: $0)) }

  /// Paths of the files below a folder, relative to ``root``.
  static func paths(in folder: String, suffix: String) -> [String] {
    guard let found = FileManager.default.enumerator(atPath: root + folder) else { return [] }
    return found.compactMap { $0 as? String }.filter { $0.hasSuffix(suffix) }.map { "\(folder)/\($0)" }.sorted()
  }

  static func text(of path: String) -> String {
    do {
      return try String(contentsOfFile: root + path, encoding: .utf8)
    } catch {
      Issue.record("\(path) can't be read: \(error)")
      return ""
    }
  }

  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root + path) }

  private static func topFiles(suffix: String) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: root).filter { $0.hasSuffix(suffix) }.sorted()
    } catch {
      Issue.record("\(root) can't be read: \(error)")
      return []
    }
  }
}

/// One file, as text and as code without comments and string contents.
struct SourceFile: Sendable {
  let path: String
  let text: String
  /// See ``SwiftCode/withoutCommentsAndStrings(_:)``: it has the same number of lines as ``text``.
  let code: String

  init(path: String, text: String) {
    self.path = path
    self.text = text
    code = path.hasSuffix(".swift") ? SwiftCode.withoutCommentsAndStrings(text) : ""
  }

  /// The folder below `Sources/` or `Tests/`.
  var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  var lines: [String] { text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }

  var codeLines: [String] { code.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }

  /// Where one of `words` stands in `text` and is not a part of a longer name: its line, from 0, and the word.
  static func occurrences(of words: [String], in text: String) -> [(line: Int, word: String)] {
    var found: [(line: Int, word: String)] = []
    let bytes = Array(text.utf8)
    for word in words {
      for position in SwiftCode.positions(of: Array(word.utf8), in: bytes) {
        found.append((bytes[..<position].count { $0 == UInt8(ascii: "\n") }, word))
      }
    }
    return found
  }
}
