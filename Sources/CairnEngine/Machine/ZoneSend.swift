import CairnRecords

/// One batch of one category, from the queue to its settlement (engine section 6).
///
/// Entries whose fate is known are settled in one transaction; those whose fate needs a fetch of the zone are reported
/// as undecided. A request that is too large is halved, down to the record that is the cause.
struct ZoneSend: Sendable {
  /// What a batch came to.
  struct Report: Sendable {
    /// False: the category had nothing to send.
    var hadBatch = false
    var sent = SentRecords()
    /// Some entry was neither saved nor deleted.
    var hasFailures = false
    /// Names that have had their turn in this call, with the reason under which they wait.
    var excluded: [String: PendingReason] = [:]
    /// Entries to settle after a fetch of the zone.
    var undecided: OutgoingBatch?
    var undecidedResults: [EntryResult] = []
    var requestError: CloudError?
    /// An entry was throttled: the zone waits.
    var zoneHold: CloudError?
    var isSignedOut: CloudError?
    var isZoneMissing = false
    var hitQuota = false
    /// Something is stored on the server that lies after the zone's token.
    var passedToken = false
    var storeFailure: String?
  }

  enum Step: Sendable {
    case task(EngineTask)
    case done(Report)
  }

  enum Stage { case taking, sending, lookingUp, settling }

  let zone: ZoneID
  let category: Int
  let request: BatchRequest
  let settings: SyncSettings
  /// Failed attempts in a row of this call, by record name.
  var attempts: [String: Int]
  /// The zone's stored token, where the zone was fetched to its end; nil where the token may not move.
  let start: ChangeToken?
  /// As far as the requests so far have moved it.
  private(set) var reached: ChangeToken?
  /// Largest number of entries that the server has taken, once it refused more.
  private(set) var cap: Int
  var report = Report()

  var stage = Stage.taking
  var entries: [OutgoingEntry] = []
  var results: [EntryResult?] = []
  var isUndecided: [Bool] = []
  /// The records of saved entries as the server returned them, by index; only where the category wants them.
  private(set) var returned: [Int: Record] = [:]
  private let wantsSaved: Bool
  /// Revisions of the batch before this one, by record name, if all of it was confirmed.
  private let confirmed: [String: Int64]
  /// Encoded bytes of a request; more than the category was told.
  private let bytesPerRequest: Int
  private var ranges: [Range<Int>] = []
  /// The range whose request is out, and those of its entries that are in the request.
  private var range: Range<Int> = 0..<0
  private var sending: [Int] = []
  private var indices: [String: Int] = [:]
  private var lookups: [Int] = []
  private var lookingUp: [Int] = []

  init(
    zone: ZoneID, category: Int, request: BatchRequest, settings: SyncSettings, attempts: [String: Int], cap: Int,
    start: ChangeToken? = nil, wantsSaved: Bool = false, bytesPerRequest: Int? = nil,
    confirmed: [String: Int64] = [:]
  ) {
    self.confirmed = confirmed
    self.bytesPerRequest = bytesPerRequest ?? request.limits.bytesPerRequest
    self.wantsSaved = wantsSaved
    self.zone = zone
    self.category = category
    self.request = request
    self.settings = settings
    self.attempts = attempts
    self.cap = cap
    self.start = start
    reached = start
  }

  var firstTask: EngineTask { .takeBatch(zone, category: category, request) }

  mutating func step(_ answer: EngineAnswer, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    if case .storeFailed(let message) = answer {
      report.storeFailure = message
      return .done(report)
    }
    switch (stage, answer) {
    case (.taking, .batch(nil)): return .done(report)
    case (.taking, .batch(let batch?)): return take(batch, registry, now)
    case (.sending, .outcomes(let outcomes, let position)):
      read(outcomes)
      follow(position, outcomes)
      return sendNext(registry, now)
    case (.sending, .failed(let error)): return failed(error, registry, now)
    case (.lookingUp, .records(let records)):
      read(records)
      return lookUpNext(registry, now)
    case (.lookingUp, .failed(let error)):
      report.requestError = error
      let reason = ErrorReactions.pendingReason(error)
      for index in lookingUp + lookups { results[index] = .postponed(reason, retryAt: nil) }
      lookups = []
      return settle(registry, now)
    case (.settling, .done): return .done(report)
    default:
      report.storeFailure = "the driver answered \(answer) in \(stage)"
      return .done(report)
    }
  }

  // MARK: Sending

  private mutating func take(_ batch: OutgoingBatch, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    // The category should have left these out: they have had their turn, and would make a call endless.
    entries = batch.entries.filter { request.excluded[$0.operation.record.id.name] == nil }
    results = Array(repeating: nil, count: entries.count)
    isUndecided = Array(repeating: false, count: entries.count)
    report.hadBatch = !entries.isEmpty
    guard report.hadBatch else { return .done(report) }
    if entries.allSatisfy({ confirmed[$0.operation.record.id.name] == $0.revision }) {
      // It would be offered for ever: what the category has stored of it contradicts itself.
      let name = entries[0].operation.record.id.name
      report.storeFailure = "\(name) is pending still though its revision was confirmed: its stored state is damaged"
      return .done(report)
    }
    if entries.contains(where: { !$0.needs.isEmpty }) {
      indices = Dictionary(entries.indices.map { (entries[$0].operation.record.id.name, $0) }) { first, _ in first }
    }
    refuseTooLarge()
    ranges = cut()
    return sendNext(registry, now)
  }

  /// A record over the server's limit fails here; the rest goes (engine section 6).
  private mutating func refuseTooLarge() {
    for (index, entry) in entries.enumerated() where !entry.operation.kind.isDelete {
      let size = RecordSize.least(entry.operation.record)
      guard size > request.limits.bytesPerRecord else { continue }
      let text = "the record has \(size) bytes, the server takes \(request.limits.bytesPerRecord)"
      results[index] = .handedOver(.tooLarge, CloudError(.limitExceeded, text))
    }
  }

  /// Ranges within the caps of count and bytes, last first. A single record makes a range whatever its size.
  private func cut() -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start = 0
    var bytes = 0
    for (index, entry) in entries.enumerated() {
      let size = RecordSize.encoded(entry.operation)
      if index > start, index - start >= max(1, cap) || bytes + size > bytesPerRequest {
        ranges.append(start..<index)
        (start, bytes) = (index, 0)
      }
      bytes += size
    }
    ranges.append(start..<entries.count)
    return ranges.reversed()
  }

  private mutating func sendNext(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    while let next = ranges.popLast() {
      range = next
      holdDependents()
      sending = range.filter { results[$0] == nil }
      guard !sending.isEmpty else { continue }
      stage = .sending
      return .task(.modify(zone, sending.map { entries[$0].operation }, atomic: settings.atomicByZone))
    }
    return lookUpNext(registry, now)
  }

  /// An entry goes only when what it needs is stored or travels in the same request (engine section 6, E6).
  private mutating func holdDependents() {
    for index in range where results[index] == nil {
      for name in entries[index].needs {
        if let reason = obstacle(name) { results[index] = .postponed(reason, retryAt: nil) }
      }
    }
  }

  /// Why an entry that needs the named record cannot go now.
  private func obstacle(_ name: String) -> PendingReason? {
    guard let index = indices[name] else { return request.excluded[name] == nil ? nil : .missingParent }
    switch results[index] {
    case nil: return range.contains(index) && !lookups.contains(index) ? nil : .unsent
    case .saved: return nil
    case .conflict, .unknownItem, .postponed(.unsent, nil): return .unsent
    case .deleted, .postponed, .handedOver: return .missingParent
    }
  }

  private mutating func read(_ outcomes: [OperationOutcome]) {
    for (offset, index) in sending.enumerated() {
      guard offset < outcomes.count else {
        take(CloudError(.undecodableAnswer, "the answer has fewer entries than the request"), index)
        continue
      }
      switch outcomes[offset] {
      case .saved(let record):
        if let tag = record.changeTag {
          results[index] = .saved(tag)
          if wantsSaved { returned[index] = record }
        } else {
          take(CloudError(.undecodableAnswer, "a saved record came without change tag"), index)
        }
      case .deleted: results[index] = .deleted
      case .failed(_, let error): take(error, index)
      }
    }
  }

  /// Own changes need not come back as echoes: where nothing else lies between, the token moves over them (engine
  /// section 6). What this device did not learn of must still be fetched.
  private mutating func follow(_ position: FeedStep?, _ outcomes: [OperationOutcome]) {
    let isUnderstood = outcomes.allSatisfy { outcome in
      if case .saved(let record) = outcome { record.changeTag != nil } else { true }
    }
    if let position, position.before == reached, outcomes.count == sending.count, isUnderstood {
      reached = position.after
    } else if outcomes.contains(where: { if case .failed = $0 { false } else { true } }) {
      report.passedToken = true
    }
  }

  private mutating func take(_ error: CloudError, _ index: Int) {
    switch ErrorReactions.entry(error, isDelete: entries[index].operation.kind.isDelete) {
    case .settled(let result): results[index] = result
    case .lookUp: lookups.append(index)
    case .fetchFirst(let result):
      results[index] = result
      isUndecided[index] = true
    case .again: results[index] = .postponed(.unsent, retryAt: nil)
    case .zoneMissing:
      results[index] = .postponed(.unsent, retryAt: nil)
      report.isZoneMissing = true
    }
    switch error.code {
    case .throttled, .tryAgainLater, .zoneBusy: report.zoneHold = report.zoneHold ?? error
    case .quotaExceeded: report.hitQuota = true
    case .authenticationFailed, .authenticationRequired: report.isSignedOut = error
    default: break
    }
  }

  private mutating func failed(_ error: CloudError, _ registry: ZoneRegistry, _ now: Moment) -> Step {
    if ErrorReactions.asksForSmallerRequest(error) && sending.count > 1 {
      let middle = sending[sending.count / 2]
      if error.code == .limitExceeded { cap = max(1, sending.count / 2) }
      ranges.append(middle..<range.upperBound)
      ranges.append(range.lowerBound..<middle)
      return sendNext(registry, now)
    }
    switch ErrorReactions.request(error) {
    case .refused, .quota:
      for index in sending { take(error, index) }
      return sendNext(registry, now)
    default:
      report.requestError = error
      let reason = ErrorReactions.pendingReason(error)
      for index in sending { results[index] = .postponed(reason, retryAt: nil) }
      // An internal error is counted against the records that met it, not against those that were still to go.
      let rest: PendingReason = reason == .internal ? .unsent : reason
      for index in ranges.joined() where results[index] == nil { results[index] = .postponed(rest, retryAt: nil) }
      for index in lookups { results[index] = .postponed(reason, retryAt: nil) }
      (ranges, lookups) = ([], [])
      return settle(registry, now)
    }
  }

  /// What the next batch of the lane must not be.
  var confirmedRevisions: [String: Int64] {
    guard report.hadBatch, !report.hasFailures else { return [:] }
    return Dictionary(entries.map { ($0.operation.record.id.name, $0.revision) }) { $1 }
  }

  // MARK: The server's records of conflicts

  private mutating func lookUpNext(_ registry: ZoneRegistry, _ now: Moment) -> Step {
    guard !lookups.isEmpty else { return settle(registry, now) }
    lookingUp = Array(lookups.prefix(max(1, cap)))
    lookups.removeFirst(lookingUp.count)
    stage = .lookingUp
    return .task(.lookup(zone, names: lookingUp.map { entries[$0].operation.record.id.name }))
  }

  private mutating func read(_ records: [Result<Record, CloudError>]) {
    for (offset, index) in lookingUp.enumerated() {
      guard offset < records.count else {
        results[index] = .postponed(.unsent, retryAt: nil)
        continue
      }
      switch records[offset] {
      case .success(let record): results[index] = .conflict(record)
      case .failure(let error) where error.code == .conflict || error.code == .exists:
        results[index] = .postponed(.internal, retryAt: nil)
      case .failure(let error): take(error, index)
      }
    }
  }
}
