/// Reads Swift text just well enough for the rules of this house.
enum SwiftCode {
  /// The text with comments and the contents of string literals removed; line ends stay where they are.
  ///
  /// Interpolations are removed with the string around them.
  static func withoutCommentsAndStrings(_ text: String) -> String {
    var stripper = Stripper(bytes: Array(text.utf8))
    return stripper.run()
  }

  /// The modules that a file imports, with attributes and access levels before `import` understood.
  static func imports(_ codeLines: [String]) -> [String] {
    codeLines.compactMap { line in
      let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
      guard let index = words.firstIndex(of: "import"), words[..<index].allSatisfy(isImportModifier) else { return nil }
      var rest = words[(index + 1)...]
      if let kind = rest.first,
        ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"].contains(kind)
      {
        rest = rest.dropFirst()
      }
      return rest.first?.split(separator: ".").first.map(String.init)
    }
  }

  private static func isImportModifier(_ word: Substring) -> Bool {
    word.hasPrefix("@") || ["public", "package", "internal", "private", "fileprivate"].contains(word)
  }

  /// Where `word` starts in `bytes` and is not a part of a longer name.
  static func positions(of word: [UInt8], in bytes: [UInt8]) -> [Int] {
    guard let first = word.first, let last = word.last else { return [] }
    var found: [Int] = []
    var start = 0
    while let position = bytes[start...].firstIndex(of: first) {
      start = position + 1
      guard bytes[position...].starts(with: word) else { continue }
      let end = position + word.count
      let startsName = isNameByte(first) && position > 0 && isNameByte(bytes[position - 1])
      let endsName = isNameByte(last) && end < bytes.count && isNameByte(bytes[end])
      if !startsName && !endsName { found.append(position) }
    }
    return found
  }

  static func isNameByte(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte >= 0x80 || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// A function, initializer or deinitializer with a body.
  struct Function: Equatable {
    var name: String
    /// The first and the last line, from 1.
    var first: Int
    var last: Int
    var lineCount: Int { last - first + 1 }
  }

  static func functions(_ code: String) -> [Function] {
    var finder = FunctionFinder(bytes: Array(code.utf8))
    return finder.run()
  }
}

private struct Stripper {
  let bytes: [UInt8]
  var position = 0
  var output: [UInt8] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func run() -> String {
    while position < bytes.count {
      if starts(with: "//") {
        while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
      } else if starts(with: "/*") {
        skipBlockComment()
      } else if let hashes = hashesBeforeQuote() {
        skipString(hashes)
      } else {
        output.append(bytes[position])
        position += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private func starts(with text: StaticString, at offset: Int = 0) -> Bool {
    let start = position + offset
    guard start + text.utf8CodeUnitCount <= bytes.count else { return false }
    return (0..<text.utf8CodeUnitCount).allSatisfy { bytes[start + $0] == text.utf8Start[$0] }
  }

  private mutating func keepLineEnd() {
    if bytes[position] == UInt8(ascii: "\n") { output.append(bytes[position]) }
    position += 1
  }

  private mutating func skipBlockComment() {
    var depth = 0
    repeat {
      if starts(with: "/*") {
        depth += 1
        position += 2
      } else if starts(with: "*/") {
        depth -= 1
        position += 2
      } else {
        keepLineEnd()
      }
    } while depth > 0 && position < bytes.count
  }

  /// The number of `#` when a string literal starts here.
  private func hashesBeforeQuote() -> Int? {
    var count = 0
    while position + count < bytes.count, bytes[position + count] == UInt8(ascii: "#") { count += 1 }
    return position + count < bytes.count && bytes[position + count] == UInt8(ascii: "\"") ? count : nil
  }

  private mutating func skipString(_ hashes: Int) {
    position += hashes
    let quotes = starts(with: "\"\"\"") ? 3 : 1
    position += quotes
    while position < bytes.count {
      if endsHere(quotes, hashes) {
        position += quotes + hashes
        output += Array("\"\"".utf8)
        return
      }
      if bytes[position] == UInt8(ascii: "\\"), hasHashes(hashes, at: position + 1) {
        position += 1 + hashes
        if position < bytes.count, bytes[position] == UInt8(ascii: "(") { skipInterpolation() } else { keepLineEnd() }
      } else {
        keepLineEnd()
      }
    }
  }

  private func hasHashes(_ count: Int, at start: Int) -> Bool {
    start + count <= bytes.count && bytes[start..<start + count].allSatisfy { $0 == UInt8(ascii: "#") }
  }

  private func endsHere(_ quotes: Int, _ hashes: Int) -> Bool {
    guard position + quotes + hashes <= bytes.count else { return false }
    return bytes[position..<position + quotes].allSatisfy { $0 == UInt8(ascii: "\"") }
      && hasHashes(hashes, at: position + quotes)
  }

  private mutating func skipInterpolation() {
    var depth = 0
    repeat {
      if let hashes = hashesBeforeQuote() {
        let kept = output
        skipString(hashes)
        output = kept
        continue
      }
      if bytes[position] == UInt8(ascii: "(") { depth += 1 }
      if bytes[position] == UInt8(ascii: ")") { depth -= 1 }
      keepLineEnd()
    } while depth > 0 && position < bytes.count
  }
}

/// Finds bodies by their braces, in code without comments and strings.
private struct FunctionFinder {
  let bytes: [UInt8]
  var position = 0
  var line = 1

  init(bytes: [UInt8]) { self.bytes = bytes }

  mutating func run() -> [SwiftCode.Function] {
    var found: [SwiftCode.Function] = []
    while let word = nextWord() {
      guard ["func", "init", "deinit"].contains(word) else { continue }
      let saved = (position, line)
      if let function = readFunction(word) { found.append(function) }
      // Functions inside of functions are found too.
      (position, line) = saved
    }
    return found
  }

  private mutating func advance() {
    if bytes[position] == UInt8(ascii: "\n") { line += 1 }
    position += 1
  }

  /// The next word that no dot precedes (`.init` and `self.init` are calls).
  private mutating func nextWord() -> String? {
    while position < bytes.count {
      guard SwiftCode.isNameByte(bytes[position]) else {
        advance()
        continue
      }
      let start = position
      while position < bytes.count, SwiftCode.isNameByte(bytes[position]) { position += 1 }
      if start > 0, bytes[start - 1] == UInt8(ascii: ".") || bytes[start - 1] == UInt8(ascii: "`") { continue }
      return String(decoding: bytes[start..<position], as: UTF8.self)
    }
    return nil
  }

  /// From behind the keyword to the end of the body; nil where there is none, as in protocols.
  private mutating func readFunction(_ keyword: String) -> SwiftCode.Function? {
    let first = line
    var name = keyword
    if keyword == "func" {
      while position < bytes.count, bytes[position] == UInt8(ascii: " ") { position += 1 }
      let start = position
      while position < bytes.count, !" (<\n".utf8.contains(bytes[position]) { position += 1 }
      name = String(decoding: bytes[start..<position], as: UTF8.self)
    }
    guard skipSignature() else { return nil }
    var depth = 0
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "{") { depth += 1 }
      if bytes[position] == UInt8(ascii: "}") {
        depth -= 1
        if depth == 0 { return .init(name: name, first: first, last: line) }
      }
      advance()
    }
    return nil
  }

  /// Moves to the `{` of the body. False when a new declaration or the end of the type comes first.
  private mutating func skipSignature() -> Bool {
    var depth = 0
    var isLineStart = false
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: "{") where depth == 0: return true
      case UInt8(ascii: "}") where depth == 0: return false
      case UInt8(ascii: "\n"): isLineStart = depth == 0
      case UInt8(ascii: " "): break
      default:
        if isLineStart, !continuesSignature() { return false }
        isLineStart = false
      }
      advance()
    }
    return false
  }

  private func continuesSignature() -> Bool {
    ["->", "where", "throws", "async", "rethrows"].contains { word in bytes[position...].starts(with: word.utf8) }
  }
}
