import CairnEngine
import CairnRecords

/// Judges a log of events by the order guarantees of engine O1–O5. Returns what is wrong.
enum EventOrder {
  static func faults(_ events: [Event]) -> [String] {
    var faults: [String] = []
    var isFetching = false
    var isSending = false
    var zone: ZoneID?
    for event in events {
      switch event {
      case .willFetchChanges:
        if isFetching { faults.append("fetch begins in a fetch") }
        isFetching = true
      case .didFetchChanges:
        if !isFetching { faults.append("fetch ends that had not begun") }
        if let zone { faults.append("fetch ends inside \(zone)") }
        isFetching = false
      case .willFetchRecordZoneChanges(let next):
        if !isFetching { faults.append("\(next) fetched outside a fetch") }
        if let zone { faults.append("\(next) begins inside \(zone)") }
        zone = next
      case .didFetchRecordZoneChanges(let done, _, _):
        if zone != done { faults.append("\(done) ends that had not begun") }
        zone = nil
      case .fetchedRecordZoneChanges(let page, _, _, _):
        if zone != page { faults.append("page of \(page) outside its zone") }
      case .fetchedDatabaseChanges:
        if !isFetching || zone != nil { faults.append("database changes at the wrong place") }
      case .willSendChanges:
        if isSending { faults.append("send begins in a send") }
        if isFetching { faults.append("send begins in a fetch") }
        isSending = true
      case .didSendChanges:
        if !isSending { faults.append("send ends that had not begun") }
        isSending = false
      case .accountChange:
        if isFetching || isSending { faults.append("the account changes inside a call") }
      case .sentRecordZoneChanges, .sentDatabaseChanges, .paused, .resumed, .decisionNeeded, .diagnostic: break
      }
    }
    if isFetching || isSending || zone != nil { faults.append("something is still open at the end") }
    return faults
  }
}
