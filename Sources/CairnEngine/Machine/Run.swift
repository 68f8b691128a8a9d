import CairnRecords

/// A category in a zone: what is sent one after the other.
struct Lane: Hashable, Sendable {
  var zone: ZoneID
  var category: Int
}

/// One step of a call. Jobs run in order; a job may put others before those that wait.
enum Job: Hashable, Sendable {
  case recover
  case survey
  case revalidate(Int)
  case adopt(Int)
  case applySealed(Lane)
  case gather(Int)
  /// From here on the server is needed.
  case goOnline
  case identify
  case beginFetch
  case databaseChanges
  /// Puts the fetch of every zone of the call before what follows.
  case planZones
  case bootstrap(Lane)
  case fetch(ZoneID)
  case endFetch
  case settleUndecided(Lane)
  case retryParked(Lane)
  case beginSend
  case zoneChanges
  /// Creates a zone known to be missing, if there is something to send.
  case probe(Lane)
  case send(Lane)
  case endSend
  /// Fetches the zones once more whose token does not cover what was confirmed.
  case coverSends
  case lose(ZoneID, ZoneQuestion.Cause)
  case refill(ZoneID)
  case answer(ZoneID, Int, ZoneLossAnswer)
  case abandon(ZoneID)
  case outlook(Lane)
}

/// A call under way.
struct Run: Sendable {
  let request: SyncRequest
  var result = SyncResult()
  var agenda: [Job]
  /// The job whose task is out.
  var current: Job?
  /// Adopted when the task succeeds.
  var delta: StateDelta = [:]
  var fetch: ZoneFetch?
  var send: ZoneSend?
  var zoneBatch: QueuedBatch<ZoneID>?

  /// Categories that are off.
  var disabled: Set<Int> = []
  /// Zones of the call, once planned.
  var zones: [ZoneID] = []
  var isCancelled = false
  var isAborted = false
  /// The zone was fetched to its end in this call.
  var fetched: Set<ZoneID> = []
  /// The server does not know the zone.
  var missing: Set<ZoneID> = []
  /// Left alone for the rest of the call.
  var skipped: Set<ZoneID> = []

  var attempts: [Lane: [String: Int]] = [:]
  var excluded: [Lane: [String: PendingReason]] = [:]
  /// Revisions of a lane's last batch, if all of it was confirmed.
  var confirmed: [Lane: [String: Int64]] = [:]
  var undecided: [Lane: (batch: OutgoingBatch, results: [EntryResult])] = [:]
  var sentSinceCount = SentDatabaseChanges()
  var cap: Int
  /// Saves wait for quota.
  var savesWait: Bool
  /// Zones into which something was sent that the stored token does not cover.
  var uncovered: Set<ZoneID> = []
  /// Closing fetches of this call, each of one or more zones.
  var closings = 0
  /// Send cycles in a row that confirmed nothing.
  var fruitless = 0
  var isFetchOpen = false
  var isSendOpen = false
  var somethingSendable = false

  init(_ request: SyncRequest, agenda: [Job], savesWait: Bool) {
    self.request = request
    self.agenda = agenda
    self.savesWait = savesWait
    cap = Int.max
  }

  mutating func next(_ jobs: [Job]) { agenda.insert(contentsOf: jobs, at: 0) }
}
