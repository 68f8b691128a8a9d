import Foundation
import Testing

/// The list of faults that `scripts/mutations` puts in: it must fit the sources, or it says nothing.
@Suite struct MutationTests {
  private struct Mutation {
    var name: String
    var values: [String: String] = [:]
  }

  private static let path = "Tests/Mutations/mutations.txt"

  private static func all() -> [Mutation] {
    var found: [Mutation] = []
    for line in SourceTree.text(of: path).split(separator: "\n") where !line.hasPrefix("#") {
      if line.hasPrefix("[") {
        found.append(Mutation(name: String(line.dropFirst().dropLast())))
      } else if let colon = line.firstIndex(of: ":"), !found.isEmpty {
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        found[found.count - 1].values[String(line[..<colon])] = String(value)
      } else {
        Issue.record("\(path): \(line) belongs to no fault")
      }
    }
    return found
  }

  @Test func everyFaultFitsItsFile() {
    let mutations = Self.all()
    #expect(mutations.count >= 24)
    #expect(Set(mutations.map(\.name)).count == mutations.count, "two faults have one name")
    for mutation in mutations {
      let values = mutation.values
      guard let file = values["file"], let line = values["line"], values["broken"] != nil, values["test"] != nil else {
        Issue.record("\(mutation.name) lacks file, line, broken or test")
        continue
      }
      let text = line.filter { $0 != "«" && $0 != "»" }
      #expect(line.count == text.count + 2, "\(mutation.name) does not mark one expression")
      let count = SourceTree.text(of: file).components(separatedBy: text).count - 1
      #expect(count == 1, "\(mutation.name): \(text) occurs \(count) times in \(file)")
    }
  }
}
