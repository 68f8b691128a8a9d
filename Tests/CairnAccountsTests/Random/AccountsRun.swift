import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import ProcessSupport

@testable import CairnAccounts

/// One randomized run: three devices of two users, every step drawn from the seed, judged by the invariants of
/// accounts.md S77 and by a model that shares no code with what it judges.
final class AccountsRun {
  struct Violation: Error, CustomStringConvertible {
    var description: String
  }

  /// What the users of one cloud identity have done, as far as it was committed.
  private struct Deeds {
    var born: Set<AccountID> = []
    var removed: Set<AccountID> = []
    /// The latest edit of each label: by stamp.
    var labels: [AccountID: (stamp: Stamp, value: String)] = [:]
    var choice: RegisterValue?
    // What the server was seen to hold.
    var everAccounts: Set<String> = []
    var facts: Set<String> = []
  }

  static let users = ["anna", "bob"]
  let seed: UInt64
  let random: SeededRandomness
  let world: TestWorld
  private(set) var devices: [TestDevice] = []
  private var deeds: [String: Deeds] = ["anna": Deeds(), "bob": Deeds()]
  private(set) var log: [String] = []
  private var names = 0
  private var hasSynced = false
  private var backup: InMemoryServer.Backup?
  private var wasRestored = false
  /// Whether the server may be restored from a backup.
  private let restores: Bool

  init(seed: UInt64, restores: Bool = false) throws {
    self.seed = seed
    self.restores = restores
    random = SeededRandomness(seed: seed)
    world = try TestWorld()
    for user in Self.users { _ = try world.server.caller(user) }
    for _ in 0..<3 {
      let skew = random.chance(percent: 30) ? Int64(random.below(4_000_000)) - 2_000_000 : 0
      devices.append(try world.device("anna", skew: skew, entries: [2, 5, 200][random.below(3)]))
    }
  }

  func run(steps: Int) throws {
    do {
      for _ in 0..<steps { try step() }
      for user in Self.users { try endAs(user) }
    } catch { throw Violation(description: "seed \(seed): \(error)\n" + log.suffix(90).joined(separator: "\n")) }
  }

  // MARK: Steps

  private func step() throws {
    world.clock.advance(milliseconds: Int64(random.below(5_000)))
    let device = devices[random.below(devices.count)]
    let crashes = random.chance(percent: 10)
    if crashes { device.border.diesAt = device.border.commits + 1 + random.below(10) }
    let before = try device.state()
    let user = device.user
    act(device)
    if crashes {
      let hasDied = device.border.commits >= device.border.diesAt ?? .max
      device.border.diesAt = nil
      if hasDied {
        log.append("\(device.number) dies")
        try device.relaunch()
      }
    }
    try note(device, before, user)
    if hasSynced { try checkServer() }
    hasSynced = false
  }

  private func act(_ device: TestDevice) {
    let action = random.below(100)
    do {
      switch action {
      case 0..<14: try add(device)
      case 14..<26: try edit(device)
      case 26..<34: try remove(device)
      case 34..<44: try select(device)
      case 44..<48: try say(device, "toggles") { try device.core.setEnabled(random.chance(percent: 60)) }
      case 48..<52: try say(device, "relaunches") { try device.relaunch() }
      case 52..<56: try say(device, "switches") { try device.signIn(Self.users[random.below(2)]) }
      case 56..<62:
        device.cloud.isOffline = random.chance(percent: 40)
        log.append("\(device.number) offline \(device.cloud.isOffline)")
      case 62..<65:
        device.cloud.setRates(random.chance(percent: 50) ? .init(lostRequest: 10, lostAnswer: 15, temporary: 5) : nil)
      case 65..<69: try legacy(device)
      case 69 where random.chance(percent: 30): try resetZone(device.user)
      case 70..<73 where restores: try restoreServer()
      default:
        hasSynced = true
        try say(device, "syncs") { try device.sync(manual: random.chance(percent: 70)) }
      }
    } catch {
      log.append("  \(error)")
    }
  }

  private func say(_ device: TestDevice, _ what: String, _ body: () throws -> Void) throws {
    log.append("\(device.number) \(device.user) \(what)")
    try body()
  }

  private func add(_ device: TestDevice) throws {
    names += 1
    try say(device, "adds \(names)") { try device.add("\(device.user)-\(names)", on: Make.instance(random.below(3))) }
  }

  private func anyAccount(_ device: TestDevice) -> AccountID? {
    let ids = device.live.sorted()
    return ids.isEmpty ? nil : ids[random.below(ids.count)]
  }

  private func edit(_ device: TestDevice) throws {
    guard let id = anyAccount(device) else { return }
    names += 1
    try say(device, "labels \(id) \(names)") {
      try device.core.edit(id, AccountEdit(label: "\(device.user)-label-\(names)"))
    }
  }

  private func remove(_ device: TestDevice) throws {
    guard let id = anyAccount(device) else { return }
    try say(device, "removes \(id)") { try device.core.remove(id) }
  }

  private func select(_ device: TestDevice) throws {
    let id = random.chance(percent: 15) ? nil : anyAccount(device)
    try say(device, "selects \(id?.rawValue ?? "none")") { try device.core.select(id) }
  }

  private func legacy(_ device: TestDevice) throws {
    let instance = Make.instance(random.below(3))
    try say(device, "sees a legacy login on \(instance)") {
      device.keyValues.instances = [
        LegacyInstance(id: instance, service: "s", url: "https://x.example", flag: random.chance(percent: 80))
      ]
      if random.chance(percent: 50) {
        _ = try device.credentials.replace(Credential(userName: nil, secret: Data([1])), for: .legacy(instance))
      }
      try device.core.migrateLegacyLogins()
    }
  }

  /// Puts the server back to a backup, or makes one: what was stored since is undone.
  private func restoreServer() throws {
    if let backup {
      log.append("the server is restored")
      try world.server.restore(backup)
      self.backup = nil
      wasRestored = true
      for user in Self.users { deeds[user]?.facts = [] }
    } else {
      log.append("the server is backed up")
      backup = try world.server.backup()
    }
  }

  private func resetZone(_ user: String) throws {
    log.append("the zone of \(user) is reset")
    _ = try world.cloud(user).deleteZones([TestWorld.zone])
    deeds[user]?.facts = []
  }

  // MARK: The model

  /// Takes down what a step has committed: read from the file, since a crash may come after the commit.
  private func note(_ device: TestDevice, _ before: ScopeState, _ user: String) throws {
    guard device.user == user else { return }
    let after = try device.state()
    let violations = after.violations
    guard violations.isEmpty else { throw Violation(description: "device \(device.number): \(violations)") }
    var deeds = deeds[user] ?? Deeds()
    deeds.born.formUnion(after.accounts.keys)
    for id in before.accounts.keys where after.accounts[id] == nil { deeds.removed.insert(id) }
    for (id, entry) in after.accounts {
      guard let field = entry.content.fields["label"], case .string(let value)? = field.value else { continue }
      if deeds.labels[id].map({ $0.stamp < field.stamp }) ?? true { deeds.labels[id] = (field.stamp, value) }
    }
    if let value = after.contexts[.main]?.value, deeds.choice.map({ $0 < value }) ?? true { deeds.choice = value }
    self.deeds[user] = deeds
  }

  // MARK: Invariants at every step

  private func checkServer() throws {
    for user in Self.users {
      let records = try world.records(user)
      var deeds = deeds[user] ?? Deeds()
      deeds.everAccounts.formUnion(records.keys.filter { $0.hasPrefix("account-") })
      let facts = Set(records.keys.filter { $0.hasPrefix("marker-") || $0.hasPrefix("tombstone-") })
      try demand(facts.isSuperset(of: deeds.facts), "I2: \(deeds.facts.subtracting(facts)) is gone from the server")
      deeds.facts = facts
      // A restore is an outside party that deletes records, which I3 does not allow for.
      for name in facts where name.hasPrefix("marker-") && !wasRestored {
        let id = name.dropFirst("marker-".count)
        try demand(
          records["account-\(id)"] != nil || records["tombstone-\(id)"] != nil, "I3: \(name) stands alone")
      }
      if case .string(let id)? = records["context-main"]?.fields["accountID"] {
        try demand(deeds.everAccounts.contains("account-\(id)"), "I4: the choice names \(id), which never came")
      }
      let other = Self.users.first { $0 != user } ?? ""
      for record in records.values {
        for case .string(let text)? in record.fields.map(\.value) where text.hasPrefix("\(other)-") {
          throw Violation(description: "I5: \(record.id.name) of \(other) is in \(user)'s zone")
        }
      }
      self.deeds[user] = deeds
    }
  }

  private func demand(_ condition: Bool, _ message: @autoclosure () throws -> String) throws {
    if !condition { throw Violation(description: try message()) }
  }

  // MARK: Quiet

  /// Heals everything, lets all devices be this user's and sync until quiet, and judges the end.
  private func endAs(_ user: String) throws {
    log.append("all end as \(user)")
    for device in devices {
      device.border.diesAt = nil
      device.cloud.heal()
      try device.signIn(user)
      let before = try device.state()
      try device.core.setEnabled(true)
      try note(device, before, user)
    }
    for _ in 0..<4 {
      world.clock.advance(seconds: 90_000)
      for device in devices {
        let before = try device.state()
        try device.sync()
        try note(device, before, user)
        try checkServer()
      }
    }
    for device in devices { device.cloud.clearLog() }
    for device in devices { try device.sync() }
    try judge(user)
  }

  private func judge(_ user: String) throws {
    guard let deeds = deeds[user] else { return }
    let expected = deeds.born.subtracting(deeds.removed)
    let records = try world.records(user)
    var first: ScopeState?
    for device in devices {
      let state = try device.state()
      let live = Set(state.accounts.keys)
      try demand(device.sentNames.isEmpty, "I7: device \(device.number) still sends \(device.sentNames)")
      try demand(live.isDisjoint(with: state.tombstones.keys), "I1: a deleted account is live")
      try demand(
        live == expected,
        "I1, I8: device \(device.number) shows \(live.sorted()), not \(expected.sorted()) of \(user)"
          + "\n" + (try overview(records)))
      try demand(
        state.pendingCount == 0, "I8: device \(device.number) has \(state.pendingCount) pending: \(pending(state))")
      if let first {
        try demand(state.markers.keys == first.markers.keys, "I6: markers differ")
        try demand(state.tombstones.keys == first.tombstones.keys, "I6: tombstones differ")
        try demand(
          state.choices == first.choices,
          "I6: choices differ: \(state.choices) and \(first.choices)\n" + (try overview(records))
            + "\n\(String(describing: records["context-main"]?.fields))")
        try demand(state.accounts.mapValues(\.content) == first.accounts.mapValues(\.content), "I6: contents differ")
      }
      first = first ?? state
      try judgeStore(device, user)
    }
    try judgeEdits(deeds, expected, records, first ?? ScopeState())
  }

  /// Who has what, for the message of a run that went wrong.
  private func overview(_ records: [String: Record]) throws -> String {
    let lines = try devices.map { device in
      let state = try device.state()
      return
        "\(device.number): \(state.accounts.keys.sorted()), tombstones \(state.tombstones.keys.sorted()), pending \(pending(state))"
    }
    return (lines + ["server: \(records.keys.sorted())"]).joined(separator: "\n")
  }

  private func pending(_ state: ScopeState) -> String {
    let markers = state.markers.filter(\.value.isPending).keys.map { "marker \($0)" }
    let accounts = state.accounts.filter(\.value.send.isPending).keys.map { "account \($0)" }
    let tombstones = state.tombstones.filter(\.value.isPending).keys.map { "tombstone \($0)" }
    return "\(markers + accounts + tombstones) contexts \(state.contexts)"
  }

  /// I8: every edit is on the server, superseded by order, or tombstoned.
  private func judgeEdits(
    _ deeds: Deeds, _ expected: Set<AccountID>, _ records: [String: Record], _ state: ScopeState
  ) throws {
    for id in expected {
      let record = records["account-\(id)"]
      try demand(record != nil, "I8: \(id) is not on the server")
      if let label = deeds.labels[id] {
        try demand(
          record?.fields["label"] == .string(label.value), "I8: \(id) is not called \(label.value) on the server")
      }
    }
    guard let choice = deeds.choice else { return }
    if let id = choice.accountID, expected.contains(id) {
      try demand(
        state.choices[.main] == id, "I8: \(id) was chosen last, \(String(describing: state.choices[.main])) is")
    }
    if choice.accountID == nil { try demand(state.choices[.main] == nil, "I8: no account was chosen last") }
  }

  /// I5 for the stores: no row of one identity holds what another's user typed.
  private func judgeStore(_ device: TestDevice, _ user: String) throws {
    let state = try device.core.file.read()
    let delta = try StateRows.difference(nil, state)
    for (address, value) in delta {
      guard let value, case .identity(let owner)? = ScopeID(rawValue: address.scope) else { continue }
      let own = try world.server.caller(user).recordName == owner ? user : Self.users.first { $0 != user } ?? ""
      for other in Self.users where other != own {
        try demand(!value.contains("\(other)-"), "I5: \(address.key) of \(own) holds \(value)")
      }
    }
  }
}
