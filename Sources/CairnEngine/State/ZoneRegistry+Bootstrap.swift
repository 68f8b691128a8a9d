import CairnRecords

/// Needs and bootstraps (engine C10).
///
/// A need raises the category's epoch, which all identities share. A bootstrap remembers the epoch at which it began,
/// and when it is complete that number becomes the zone's: so a need that is raised meanwhile is not cleared by it.
extension ZoneRegistry {
  func epoch(_ category: String) -> Int64 { rows[StoredKeys.epoch(category)].flatMap { Int64($0) } ?? 0 }

  func bootstrapDone(_ zone: ZoneID, _ category: String) -> Int64? { number(zone, category, .done) }

  /// The epoch at which the bootstrap under way began.
  func bootstrapStart(_ zone: ZoneID, _ category: String) -> Int64? { number(zone, category, .start) }

  func bootstrapToken(_ zone: ZoneID, _ category: String) -> ChangeToken? {
    rows[StoredKeys.bootstrap(zone, category, .token)].map { ChangeToken($0) }
  }

  /// How far a category may trust that it knows what the zone holds.
  public func bootstrapStatus(of category: String, _ demand: BootstrapDemand, in zone: ZoneID) -> BootstrapStatus {
    let done = bootstrapDone(zone, category)
    let isActivated =
      switch demand {
      case .own: done != nil
      case .whereMissed: rows[StoredKeys.bootstrap(zone, category, .missed)] == nil
      }
    if !isActivated { return .notActivated }
    return (done ?? 0) < epoch(category) ? .activated : .current
  }

  /// Whether a category was off when the engine last looked.
  func wasOff(_ category: String) -> Bool { rows[StoredKeys.off(category)] != nil }

  /// Raises a need: the category may have missed records.
  func raisedNeed(_ category: String) -> StateDelta { [StoredKeys.epoch(category): String(epoch(category) + 1)] }

  private func number(_ zone: ZoneID, _ category: String, _ attribute: StoredKeys.Bootstrap) -> Int64? {
    rows[StoredKeys.bootstrap(zone, category, attribute)].flatMap { Int64($0) }
  }
}

/// What a session writes about itself: another one that did not serve a category, or ran on a copy of the file, is
/// noticed by it (engine section 3).
struct SessionStamp: Hashable {
  /// Version of the stored facts about categories; raised when an older library would misread them.
  static let library = "1"

  var library = SessionStamp.library
  var device: String
  var categories: [String]

  init(device: String?, categories: [String]) {
    self.device = device ?? "-"
    self.categories = categories.sorted()
  }

  init?(_ text: String?) {
    guard let words = text?.split(separator: " ", omittingEmptySubsequences: false), words.count >= 2 else {
      return nil
    }
    library = String(words[0])
    device = String(words[1])
    categories = words.dropFirst(2).map(String.init)
  }

  var text: String { ([library, device] + categories).joined(separator: " ") }
}
