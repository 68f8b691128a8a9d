/// When to sync without being told (engine section 9): a pure value on uptime, in milliseconds.
///
/// Local changes wait for a moment of quiet, hints are merged, the server is asked now and then in any case, and a
/// server's retry time is kept.
public struct Scheduler: Hashable, Sendable {
  public var settings: SyncSettings
  private var firstChange: Int64?
  private var lastChange: Int64?
  private var hintDue: Int64?
  private var pollDue: Int64?
  private var retryDue: Int64?
  /// Nothing is due before this: a retry-after, or a backoff that is not the network's.
  private var holdUntil: Int64?
  private var isOffline = false

  /// A launch fetches at once.
  public init(settings: SyncSettings, now: Moment) {
    self.settings = settings
    pollDue = now.uptime
  }

  // MARK: What happens

  /// Something was changed here: it is sent after a moment of quiet, and not later than ``SyncSettings/sendLatest``.
  public mutating func noteLocalChange(_ now: Moment) {
    firstChange = firstChange ?? now.uptime
    lastChange = now.uptime
  }

  /// The server has, or may have, something new. Hints in between merge.
  public mutating func noteHint(_ now: Moment) {
    guard hintDue == nil else { return }
    hintDue = now.uptime + Int64(Double(settings.hintJitter) * now.fraction)
  }

  /// The network is back: its backoff is over, a retry-after is not.
  public mutating func noteReconnect(_ now: Moment) {
    if isOffline { holdUntil = nil }
    isOffline = false
    pollDue = now.uptime
  }

  /// A call has begun: what was due is being done.
  public mutating func noteStart() {
    (firstChange, lastChange, hintDue, pollDue, retryDue) = (nil, nil, nil, nil, nil)
  }

  /// A call has ended.
  public mutating func noteFinish(_ result: SyncResult, _ now: Moment) {
    pollDue = now.uptime + settings.pollInterval
    retryDue = nil
    holdUntil = nil
    isOffline = result.condition == .offline
    guard let retry = result.nextRetry else { return }
    // A time that is over already was not used by the call that has just ended: asking at once would turn in circles.
    let wait = retry > now.wall ? min(retry - now.wall, settings.longestWait) : settings.backoffFirst
    retryDue = now.uptime + wait
    if result.failure != nil { holdUntil = retryDue }
  }

  // MARK: What is due

  /// The uptime at which the next call is due; nil when nothing is planned.
  public var due: Int64? {
    var due = [hintDue, pollDue, retryDue].compactMap { $0 }.min()
    if let firstChange, let lastChange {
      let send = min(lastChange + settings.sendQuiet, firstChange + settings.sendLatest)
      due = min(due ?? send, send)
    }
    guard let due else { return nil }
    return max(due, holdUntil ?? due)
  }

  /// Whether a call is to be made now.
  public func isDue(_ now: Moment) -> Bool { due.map { $0 <= now.uptime } ?? false }

  /// Milliseconds until the next call is due, at least 0; nil when nothing is planned.
  public func wait(_ now: Moment) -> Int64? { due.map { max(0, $0 - now.uptime) } }
}
