import CairnRecords
import CairnWire
import Foundation

/// The rows that a state is stored in: one per fact, so that a change writes as much as it changed.
///
/// Device rows have the empty scope. Formats are in docs/internals/accounts.md.
enum StateRows {
  struct Address: Hashable, Sendable {
    var scope: String
    var key: String
  }

  typealias Rows = [Address: String]

  /// The zone of records in rows: they are kept without one.
  static let zone = ZoneID(name: "accounts")

  enum Failure: Error { case unreadable(String) }

  // MARK: Differences

  /// The rows that differ, nil for those that go.
  static func difference(_ old: AccountsState?, _ new: AccountsState) throws -> [Address: String?] {
    var delta: [Address: String?] = [:]
    if old?.device != new.device {
      for (key, value) in deviceRows(new.device) { delta[Address(scope: "", key: key)] = .some(value) }
      for id in old?.device.bindings.keys ?? [:].keys where new.device.bindings[id] == nil {
        delta[Address(scope: "", key: "binding/\(id)")] = .some(nil)
      }
    }
    for (scope, state) in new.scopes where old?.scopes[scope] != state {
      try ScopeDifference(
        scope: scope.rawValue, old: old?.scopes[scope] ?? ScopeState(), isNew: old?.scopes[scope] == nil
      )
      .write(state, into: &delta)
    }
    return delta
  }

  private static func deviceRows(_ device: DeviceState) -> [String: String] {
    var rows = ["writer": device.writer, "marker": device.marker, "need": device.hasNeed ? "1" : "0"]
    switch device.identity {
    case .none: rows["identity"] = "none"
    case .unresolved: rows["identity"] = "unresolved"
    case .user(let user): rows["identity"] = "user:" + user
    }
    for (id, binding) in device.bindings { rows["binding/\(id)"] = encode(binding) }
    for (id, scope) in device.adopted { rows["adopted/\(id)"] = scope }
    return rows
  }

  // MARK: JSON

  static func encode(_ value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      // Strings, integers and booleans always encode.
      preconditionFailure("\(error)")
    }
  }

  static func decode<Value: Decodable>(_ type: Value.Type, _ text: String, _ key: String) throws -> Value {
    do { return try JSONDecoder().decode(type, from: Data(text.utf8)) } catch { throw Failure.unreadable(key) }
  }

  static func text(_ record: Record) -> String { String(decoding: RecordText.encode(record), as: UTF8.self) }

  static func record(_ text: String, _ key: String) throws -> Record {
    do { return try RecordText.decode(Array(text.utf8), in: zone) } catch { throw Failure.unreadable(key) }
  }
}

/// The changed rows of one scope.
private struct ScopeDifference {
  let scope: String
  let old: ScopeState
  let isNew: Bool

  func write(_ new: ScopeState, into delta: inout [StateRows.Address: String?]) throws {
    func compare<Key: Hashable, Value: Equatable>(
      _ kind: String, _ before: [Key: Value], _ after: [Key: Value], _ text: (Value) -> String
    ) {
      for (key, value) in after where before[key] != value {
        delta[.init(scope: scope, key: "\(kind)/\(key)")] = .some(text(value))
      }
      for key in before.keys where after[key] == nil { delta[.init(scope: scope, key: "\(kind)/\(key)")] = .some(nil) }
    }
    compare("account", old.accounts, new.accounts) { StateRows.encode(StoredAccount($0)) }
    compare("tombstone", old.tombstones, new.tombstones) { StateRows.encode($0) }
    compare("marker", old.markers, new.markers) { StateRows.encode($0) }
    compare("context", old.contexts, new.contexts) { StateRows.encode(StoredContext($0)) }
    compare("choice", old.choices, new.choices) { $0.rawValue }
    compare("staged", old.staged, new.staged) { StateRows.encode(StoredItem($0)) }
    compare("parked", old.parked, new.parked) { StateRows.encode(StoredParked($0)) }
    compare("cleanup", old.cleanups, new.cleanups) { StateRows.encode($0) }
    compare("rekey", old.rekeys, new.rekeys) { StateRows.encode($0) }
    compare("flag", old.flagsSeen, new.flagsSeen) { String($0) }
    if isNew || old.settings != new.settings {
      delta[.init(scope: scope, key: "settings")] = .some(StateRows.encode(new.settings))
    }
  }
}
