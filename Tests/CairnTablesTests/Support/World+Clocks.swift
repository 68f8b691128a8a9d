import CairnRecords
import Foundation
import Testing

extension World {
  /// The field clocks of a record on the server, in seconds after the world's start.
  func clocks(_ name: String) throws -> [String: Double] {
    let record = try #require(try serverRecords()[name], "\(name) is not on the server")
    guard case .string(let json)? = record.fields["cairn_clocks"],
      let groups = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: [String]]
    else { return [:] }
    var result: [String: Double] = [:]
    for (clock, names) in groups {
      for name in names { result[name] = Double((Int64(clock) ?? 0) - World.start) / 1_000 }
    }
    return result
  }

  /// Names of the live records on the server, sorted.
  func serverNames() throws -> [String] { try serverRecords().keys.sorted() }
}
