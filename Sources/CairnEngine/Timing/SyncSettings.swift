/// All times and bounds of the engine (engine section 9), in milliseconds unless said otherwise.
public struct SyncSettings: Hashable, Sendable {
  /// A local change is sent after this much quiet.
  public var sendQuiet: Int64 = 1_000
  /// A local change is sent no later than this after the first one, quiet or not.
  public var sendLatest: Int64 = 10_000
  /// A hint is followed by a fetch after a random part of this.
  public var hintJitter: Int64 = 2_000
  /// Without hints, how often the server is asked.
  public var pollInterval: Int64 = 15 * 60_000
  /// First step of the backoff; doubles up to ``backoffLongest``.
  public var backoffFirst: Int64 = 2_000
  public var backoffLongest: Int64 = 15 * 60_000
  /// Tries after which an internal error counts as blocked, and how often it is tried from then on.
  public var internalTries: Int = 5
  public var internalInterval: Int64 = 3_600_000
  /// How soon, at first and at most, saves are tried again after the quota was exceeded.
  public var quotaFirst: Int64 = 3_600_000
  public var quotaLongest: Int64 = 24 * 3_600_000
  /// A stored time further away than this is the trace of a clock jump and is clamped to it.
  public var longestWait: Int64 = 24 * 3_600_000
  /// How many times in a row a record is sent again at once before it waits (engine section 5).
  public var attemptsInARow: Int = 5
  /// How many send cycles in a row may confirm nothing before a call ends.
  public var fruitlessRounds: Int = 10
  /// An expired token without a cause counts as lost history if the last good fetch is younger (tables L12).
  public var tombstoneLife: Int64 = 180 * 86_400_000
  /// Entries per look-up of a snapshot's sweep.
  public var sweepChunk: Int = 200
  /// Whether one failed record of a request keeps the others from being stored.
  public var atomicByZone = false

  public init() {}

  /// The values of `cairn sync --watch` where the server sends hints.
  public static var watch: SyncSettings {
    var settings = SyncSettings()
    settings.sendQuiet = 50
    settings.sendLatest = 500
    settings.hintJitter = 0
    return settings
  }

  /// The values of `cairn sync --watch` where there are no hints: the server is asked every second.
  public static var watchByPolling: SyncSettings {
    var settings = SyncSettings.watch
    settings.pollInterval = 1_000
    return settings
  }
}
