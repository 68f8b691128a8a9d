import CairnRecords

/// Which `will` events still lack their `did` (engine O2): what a driver owes when it has to give a call up.
struct OpenEvents {
  private var isFetching = false
  private var isSending = false
  private var isManual = false
  private var zone: ZoneID?

  mutating func note(_ event: Event) {
    switch event {
    case .willFetchChanges(let manual): (isFetching, isManual) = (true, manual)
    case .willSendChanges(let manual): (isSending, isManual) = (true, manual)
    case .willFetchRecordZoneChanges(let zone): self.zone = zone
    case .didFetchRecordZoneChanges: zone = nil
    case .didFetchChanges: isFetching = false
    case .didSendChanges: isSending = false
    case .accountChange, .fetchedDatabaseChanges, .fetchedRecordZoneChanges, .sentDatabaseChanges,
      .sentRecordZoneChanges, .paused,
      .resumed, .decisionNeeded, .diagnostic:
      break
    }
  }

  /// The missing events, inner ones first.
  func closing(_ failure: SyncFailure) -> [Event] {
    var events: [Event] = []
    if let zone { events.append(.didFetchRecordZoneChanges(zone, error: failure, isSnapshot: false)) }
    if isFetching { events.append(.didFetchChanges(isManual: isManual)) }
    if isSending { events.append(.didSendChanges(isManual: isManual)) }
    return events
  }
}
