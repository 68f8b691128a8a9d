/// A module of the table in DESIGN section 4.
struct Module: Sendable {
  enum Side: Sendable {
    /// Both sides use it.
    case shared
    /// What an app links.
    case client
    case server
    /// Joins both: tests, simulation, the executable.
    case joint
  }

  var layer: Int
  var side: Side
  /// The system libraries that it may import.
  var system: Set<String> = []
  /// Where not nil, the only Cairn modules that it may import.
  var only: Set<String>?
  /// Rule 6: decisions, so no time, randomness or threads of its own.
  var isDeterministic = false

  static let all: [String: Module] = [
    "CairnSQLite": Module(layer: 1, side: .shared, system: ["CSQLite"], only: []),
    "CairnRecords": Module(layer: 1, side: .shared, only: [], isDeterministic: true),
    "CairnWire": Module(
      layer: 2, side: .shared, system: ["CZlib"], only: ["CairnRecords"], isDeterministic: true),
    "CairnEngine": Module(layer: 2, side: .client, only: ["CairnRecords"], isDeterministic: true),
    "CairnServerCore": Module(layer: 2, side: .server, system: ["CSQLite"], isDeterministic: true),
    "CairnTables": Module(layer: 3, side: .client, system: ["CSQLite"], isDeterministic: true),
    "CairnAccounts": Module(layer: 3, side: .client, system: ["CSQLite"], isDeterministic: true),
    "CairnSodium": Module(layer: 4, side: .client, system: ["CSodium"], only: ["CairnAccounts"]),
    "CairnClient": Module(layer: 4, side: .client, system: ["CCurl", "CZlib"]),
    "CairnServer": Module(
      layer: 4, side: .server, system: ["CSQLite", "CMicrohttpd", "CCrypto", "CZlib"]),
    "CairnPostgres": Module(
      layer: 4, side: .server, system: ["CPostgres"], only: ["CairnRecords", "CairnServerCore"]),
    "CairnTesting": Module(layer: 4, side: .joint),
    "Cairn": Module(layer: 5, side: .client),
    "CairnSimulation": Module(layer: 5, side: .joint),
    "CairnCLI": Module(layer: 6, side: .joint),
  ]

  /// Why this module may not import `name`; nil where it may. The toolchain's modules are free.
  func refusal(of name: String, among modules: [String: Module]) -> String? {
    guard let other = modules[name] else {
      guard SourceTree.exists("Sources/\(name)/module.modulemap") else { return nil }
      return system.contains(name) ? nil : "this system library is not for it (rules 1 and 5)"
    }
    if other.layer > layer { return "layer \(other.layer) is above layer \(layer) (rule 1)" }
    if let only, !only.contains(name) { return "it may import only \(only.sorted()) (rules 1 and 2)" }
    switch (side, other.side) {
    case (.client, .server), (.server, .client), (.shared, .client), (.shared, .server):
      return "client and server meet only in CairnWire and CairnRecords (rule 3)"
    case (.client, .joint), (.server, .joint), (.shared, .joint):
      return "it would bring both sides along (rules 3 and 5)"
    default: return nil
    }
  }
}

/// The dependencies that `Package.swift` declares, read from its text.
enum PackageManifest {
  /// Module to the targets that it depends on: in each call that makes a target, the first name and the others.
  static let dependencies: [String: Set<String>] = {
    let names = Set(Module.all.keys)
    var text = SourceTree.text(of: "Package.swift")
    for call in ["library(", "tests(", "executableTarget(", "systemLibrary("] {
      text = text.replacing(call, with: "\u{1}")
    }
    var result: [String: Set<String>] = [:]
    for section in text.split(separator: "\u{1}") {
      let quoted = section.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map { String($0.element) }
      guard let target = quoted.first else { continue }
      result[target, default: []].formUnion(quoted.dropFirst().filter { names.contains($0) && $0 != target })
    }
    return result
  }()
}
