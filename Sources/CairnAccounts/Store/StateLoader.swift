import CairnRecords

/// Reads a state from its rows.
///
/// Staging that can't be read is dropped and raises a need: a bootstrap brings it again (accounts.md A56). Anything
/// else unreadable is an error, never "no state".
struct StateLoader {
  private var state: AccountsState
  private var scope = ""
  /// Rows of staging that were dropped.
  private var lost: [StateRows.Address] = []

  static func load(_ rows: StateRows.Rows) throws -> (state: AccountsState, lost: [StateRows.Address]) {
    var device: [String: String] = [:]
    for (address, value) in rows where address.scope.isEmpty { device[address.key] = value }
    var loader = StateLoader(state: AccountsState(device: try Self.device(device)))
    for (address, value) in rows where !address.scope.isEmpty {
      guard let scope = ScopeID(rawValue: address.scope) else { throw StateRows.Failure.unreadable(address.scope) }
      loader.scope = address.scope
      var state = loader.state[scope]
      try loader.take(address.key, value, &state)
      loader.state[scope] = state
    }
    if !loader.lost.isEmpty { loader.state.device.hasNeed = true }
    return (loader.state, loader.lost)
  }

  private init(state: AccountsState) { self.state = state }

  private static func device(_ rows: [String: String]) throws -> DeviceState {
    guard let writer = rows["writer"], let marker = rows["marker"], let identity = rows["identity"] else {
      throw StateRows.Failure.unreadable("device")
    }
    var device = DeviceState(writer: writer, marker: marker, hasNeed: rows["need"] == "1", identity: .none)
    switch identity {
    case "none": break
    case "unresolved": device.identity = .unresolved
    case _ where identity.hasPrefix("user:"): device.identity = .user(String(identity.dropFirst(5)))
    default: throw StateRows.Failure.unreadable("identity")
    }
    for (key, value) in rows {
      if let id = suffix(key, "binding/").flatMap({ InstanceID($0) }) {
        device.bindings[id] = try StateRows.decode(LegacyBinding.self, value, key)
      } else if let id = suffix(key, "adopted/").flatMap({ AccountID($0) }) {
        device.adopted[id] = value
      }
    }
    return device
  }

  private static func suffix(_ key: String, _ prefix: String) -> Substring? {
    key.hasPrefix(prefix) ? key.dropFirst(prefix.count) : nil
  }

  private mutating func take(_ key: String, _ value: String, _ state: inout ScopeState) throws {
    let parts = key.split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else {
      if key == "settings" { state.settings = try StateRows.decode(ScopeSettings.self, value, key) }
      return
    }
    switch parts[0] {
    case "account": state.accounts[try id(parts[1])] = try StateRows.decode(StoredAccount.self, value, key).entry(key)
    case "tombstone": state.tombstones[try id(parts[1])] = try StateRows.decode(SendState.self, value, key)
    case "marker": state.markers[try instance(parts[1])] = try StateRows.decode(SendState.self, value, key)
    case "context": state.contexts[try slot(parts[1])] = try StateRows.decode(StoredContext.self, value, key).entry
    case "choice": state.choices[try slot(parts[1])] = try id(value[...])
    case "staged": takeStaged(parts[1], value, key, &state)
    case "parked": state.parked[String(parts[1])] = try StateRows.decode(StoredParked.self, value, key).parked(key)
    case "cleanup": state.cleanups[try id(parts[1])] = try StateRows.decode(CleanupIntent.self, value, key)
    case "rekey": state.rekeys[try id(parts[1])] = try StateRows.decode(RekeyIntent.self, value, key)
    case "flag": state.flagsSeen[try instance(parts[1])] = Int64(value) ?? Int64.max
    // Rows of a newer release are kept and not understood.
    default: break
    }
  }

  private mutating func takeStaged(_ number: Substring, _ value: String, _ key: String, _ state: inout ScopeState) {
    do {
      guard let number = Int64(number) else { throw StateRows.Failure.unreadable(key) }
      state.staged[number] = try StateRows.decode(StoredItem.self, value, key).item(key)
    } catch {
      lost.append(StateRows.Address(scope: scope, key: key))
    }
  }

  private func id(_ text: Substring) throws -> AccountID {
    guard let id = AccountID(text) else { throw StateRows.Failure.unreadable(String(text)) }
    return id
  }

  private func instance(_ text: Substring) throws -> InstanceID {
    guard let id = InstanceID(text) else { throw StateRows.Failure.unreadable(String(text)) }
    return id
  }

  private func slot(_ text: Substring) throws -> ContextSlot {
    guard let slot = ContextSlot(text) else { throw StateRows.Failure.unreadable(String(text)) }
    return slot
  }
}
