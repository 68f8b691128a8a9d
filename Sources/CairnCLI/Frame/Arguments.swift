/// A command line that was parsed and checked against its declaration.
struct Arguments: Sendable, Equatable {
  var flags: Set<String> = []
  var values: [String: [String]] = [:]
  var positionals: [String: [String]] = [:]

  func flag(_ name: String) -> Bool { flags.contains(name) }

  /// The value of an option; the last one where it was given more than once. Nil when it was not given.
  func value(_ name: String) -> String? { values[name]?.last }

  /// All values of a repeated option, in order.
  func all(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option declared as integer.
  func integer(_ name: String) -> Int? { value(name).flatMap { Int($0) } }

  /// A required positional or option. The parser has checked that it is there.
  func required(_ name: String) throws -> String {
    guard let value = positionals[name]?.first ?? values[name]?.last else {
      throw CommandError.usage("\(name) is missing", remedy: "see --help")
    }
    return value
  }

  func optional(_ name: String) -> String? { positionals[name]?.first }

  func rest(_ name: String) -> [String] { positionals[name] ?? [] }
}
