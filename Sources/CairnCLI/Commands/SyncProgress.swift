import Cairn
import CairnEngine

/// Draws how far a sync has come, where standard error is a terminal.
final class SyncProgress: EngineObserver {
  private var bar: ProgressBar
  private var fetched = 0
  private var sent = 0
  private var total: Int?
  /// Set once the sync is open; tells how many changes wait when the first batch has been sent.
  var pending: (() -> Int?)?

  init(_ output: Output, clock: @escaping () -> Double = ProgressBar.uptime) {
    bar = ProgressBar("sync", output, clock: clock)
  }

  func handle(_ event: Event) {
    switch event {
    case .fetchedRecordZoneChanges(_, let records, let deletions, _):
      fetched += records + deletions
      bar.label = "fetched"
      bar.update(fetched, of: nil)
    case .sentRecordZoneChanges(_, let records):
      sent += records.saved + records.deleted
      // What was not folded before the first batch is counted by it: the total is known from then on.
      if total == nil { total = pending?().map { $0 + sent } }
      bar.label = "sent"
      bar.update(sent, of: total.map { max($0, sent) })
    default: break
    }
  }

  /// Takes the bar away; call it before other output.
  func finish() { bar.finish() }
}
