import Foundation

/// `cairn demo`
enum DemoCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["demo"], summary: "Shows the whole story in a minute, on a temporary server and two devices",
    discussion: """
      Everything happens in a temporary folder with a server of its own, which are gone afterwards: no file of yours and no \
      other server is touched. Exit code 1 when the two files do not agree at the end.
      """,
    options: [.flag("keep", "leave the folder with both files and tell its path")],
    example: "cairn demo --keep")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    let children = DemoChildren()
    return try context.interruption.whileHandling({ children.interrupt() }) {
      let start = ContinuousClock.now
      let world = try DemoWorld(context, children: children)
      do {
        var story = DemoStory(world, context.output)
        try story.tell()
        let comparison = try DemoComparison(story.laptop, story.phone)
        world.stopServer()
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        report(comparison, story, seconds, keptIn: arguments.flag("keep") ? world.folder : nil, context.output)
        if !arguments.flag("keep") { try world.remove() }
        return comparison.agrees ? .done : .failed
      } catch {
        world.stopServer()
        if !arguments.flag("keep") { try world.remove() }
        throw error
      }
    }
  }

  private static func report(
    _ comparison: DemoComparison, _ story: DemoStory, _ seconds: Double, keptIn folder: String?, _ output: Output
  ) {
    var object: [JSONValue.Member] = [
      .init(key: "agree", value: .bool(comparison.agrees)), .init(key: "seconds", value: .number(seconds)),
      .init(key: "tables", value: comparison.json), .init(key: "syncs", value: .array(story.syncs)),
    ]
    if let folder { object.append(.init(key: "folder", value: .string(folder))) }
    output.report(.object(object)) {
      let end = comparison.agrees ? "Both files agree." : "The files do not agree: report this, with --keep."
      let kept = folder.map { "\nBoth files are in \($0)" } ?? "\nThe server is stopped and its folder removed."
      return "\n\(comparison.text)\n\(end) \(String(format: "%.1f", seconds)) seconds.\(kept)"
    }
  }
}

/// Both devices' tables side by side.
struct DemoComparison {
  private var tables: [(name: String, laptop: Int, phone: Int, agrees: Bool)] = []

  init(_ laptop: DemoDevice, _ phone: DemoDevice) throws {
    for name in DemoShop.tables {
      let (one, other) = (try laptop.contents(name), try phone.contents(name))
      tables.append((name, one.count, other.count, one == other))
    }
  }

  var agrees: Bool { tables.allSatisfy(\.agrees) }

  var text: String {
    var table = TextTable("table", "laptop", "phone", "same rows")
    for entry in tables { table.add(entry.name, "\(entry.laptop)", "\(entry.phone)", entry.agrees ? "yes" : "NO") }
    return table.text
  }

  var json: JSONValue {
    .array(
      tables.map { entry in
        [
          "name": .string(entry.name), "laptop": JSONValue(entry.laptop), "phone": JSONValue(entry.phone),
          "agree": .bool(entry.agrees),
        ]
      })
  }
}
