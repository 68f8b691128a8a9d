/// How values and records are spelled in one answer or request: what the caller asked for.
public struct WireStyle: Hashable, Sendable {
  public enum Numbers: Sendable {
    /// JSON numbers, exact.
    case plain
    /// Strings where an INT64 is beyond ±2^53; what Cairn's client writes.
    case safe
    /// Every INT64 and DOUBLE as a string (`numbersAsStrings`).
    case strings
  }

  public var numbers = Numbers.plain
  /// Every list type is named `LIST` (web-services section 14, `listType=LIST`).
  public var namesListsLIST = false
  /// Zone IDs carry `ownerName` too (section 14).
  public var writesOwnerName = false
  /// Only the keys that pyicloud's strict mode knows (section 14).
  public var strictKeys = false
  /// Tombstones carry `recordType` and `recordChangeTag` (section 15, `tombstone-type`).
  public var tombstoneType = false
  /// Tombstones carry `modified` (section 15, `tombstone-time`).
  public var tombstoneTime = false
  /// CONFLICT entries carry `serverRecord` (section 15, `conflict-record`).
  public var conflictRecord = false

  /// What stands in front of assets' download addresses that begin with `/`.
  public var assetBase = ""

  public init() {}

  /// What Cairn's client writes.
  public static let client: WireStyle = {
    var style = WireStyle()
    style.numbers = .safe
    return style
  }()
}
