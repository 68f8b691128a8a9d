/// Rows of text in columns, for people.
///
/// Columns of numbers are set to the right. Control characters in cells, which come from user data, are shown as `·`.
struct TextTable {
  private let header: [String]
  private var rows: [[String]] = []

  init(_ header: String...) { self.header = header }

  /// Adds a row; missing cells are empty.
  mutating func add(_ cells: String...) { add(cells) }

  mutating func add(_ cells: [String]) {
    rows.append(header.indices.map { $0 < cells.count ? Self.printable(cells[$0]) : "" })
  }

  var isEmpty: Bool { rows.isEmpty }

  /// The header and the rows, each with a line end.
  var text: String {
    let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
    let isNumber = header.indices.map { column in
      !rows.isEmpty && rows.allSatisfy { Double($0[column]) != nil || $0[column].isEmpty }
    }
    return ([header] + rows).map { row in
      var line = header.indices.map { column in
        let space = String(repeating: " ", count: widths[column] - row[column].count)
        return isNumber[column] ? space + row[column] : row[column] + space
      }.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line + "\n"
    }.joined()
  }

  private static func printable(_ text: String) -> String {
    String(
      text.map { character in
        character.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f } ? "·" : character
      })
  }
}
