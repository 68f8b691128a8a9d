import CairnSimulation

/// `cairn simulate`
enum SimulateCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["simulate"], summary: "Runs devices with random programs and faults, and judges the outcome",
    discussion: """
      Devices with real database files sync with the real server core in memory, on manual clocks, while requests get lost, \
      processes end and disks fail. In the end all of it heals, and the devices must agree with each other and with a model. \
      The same seed gives the same run, byte for byte; its hash is printed. Exit code 1, the seed and the shortest trace \
      found when something is violated.
      """,
    options: [
      .integer("seed", "N", in: 0...Int.max, "the first run's seed (default 1)"),
      .integer("devices", "N", in: 1...26, "devices of a run (default 3)"),
      .integer("steps", "N", in: 1...100_000, "steps of a run (default 200)"),
      .integer("count", "M", in: 1...1_000_000, "runs, each with the next seed (default 1)"),
      .value(
        "without", "FEATURE",
        "leave out manyKeys, foreignKeys, unique, faults, upheavals, recursiveTriggers or serverRestores",
        repeated: true),
      .flag("trace", "print what happens in every run, not only in one that fails"),
      .flag("keep-going", "go on after a violation, and don't look for its shortest trace"),
    ], example: "cairn simulate --seed 7 --devices 3 --steps 200")

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    let first = arguments.integer("seed") ?? 1
    let count = arguments.integer("count") ?? 1
    var features = Simulation.Features.all
    for name in arguments.all("without") { features.subtract(try feature(name)) }
    var coverage = Coverage()
    var hash: UInt64 = 0
    var failures: [Simulation.Report] = []
    for seed in first..<first + count {
      let options = Simulation.Options(
        seed: UInt64(seed), devices: arguments.integer("devices") ?? 3, steps: arguments.integer("steps") ?? 200,
        features: features)
      var report = try Simulation.run(options)
      coverage.add(report.coverage)
      hash = (hash ^ report.hash) &* 0x100_0000_01b3
      if arguments.flag("trace") { context.output.line(report.trace.joined(separator: "\n")) }
      guard let violation = report.violation else { continue }
      if arguments.flag("keep-going") {
        context.output.line("seed \(seed): \(violation)")
        failures.append(report)
        continue
      }
      report = try Simulation.shrink(options) ?? report
      failures.append(report)
      context.output.line(report.trace.joined(separator: "\n"))
      break
    }
    answer(first, count, hash, coverage, failures, context.output)
    return failures.isEmpty ? .done : .failed
  }

  private static func feature(_ name: String) throws -> Simulation.Features {
    switch name {
    case "manyKeys": return .manyKeys
    case "foreignKeys": return .foreignKeys
    case "unique": return .unique
    case "faults": return .faults
    case "upheavals": return .upheavals
    case "recursiveTriggers": return .recursiveTriggers
    case "serverRestores": return .serverRestores
    default:
      throw CommandError.usage(
        "there is no feature \(name)",
        remedy: "the features are manyKeys, foreignKeys, unique, faults, upheavals, recursiveTriggers, serverRestores")
    }
  }

  private static func answer(
    _ first: Int, _ count: Int, _ hash: UInt64, _ coverage: Coverage, _ failures: [Simulation.Report], _ output: Output
  ) {
    let digits = String(hash, radix: 16)
    output.report([
      "seed": JSONValue(first), "count": JSONValue(count), "hash": .string(digits),
      "violations": .array(
        failures.map { report in
          [
            "seed": .string("\(report.seed)"), "violation": .string(report.violation?.description ?? ""),
            "trace": .array(report.trace.map { .string($0) }),
          ]
        }), "neverSeen": .array(coverage.missing.map { .string($0.rawValue) }),
    ]) {
      var lines = failures.map { "seed \($0.seed): \($0.violation?.description ?? "")" }
      let missing = coverage.missing.map(\.rawValue)
      if !missing.isEmpty { lines.append("never seen: \(missing.joined(separator: ", "))") }
      let outcome = failures.isEmpty ? "no violation" : "\(failures.count) runs with a violation"
      lines.append("\(count) runs from seed \(first): \(outcome), hash \(digits)")
      return lines.joined(separator: "\n")
    }
  }
}
