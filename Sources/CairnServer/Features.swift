import CairnServerCore
import CairnWire

/// The extensions of web-services section 15 that one request asks for.
struct Features: Hashable, Sendable {
  var conflictRecord = false
  var tombstoneType = false
  var tombstoneTime = false
  var allTombstones = false
  var expiredCode = false
  var zoneToken = false
  var feedPosition = false
  var page: Int?
  /// Of the app that asks (section 14).
  var switches: Set<CompatibilitySwitch> = []

  /// Reads the query parameter `cairn`, a comma list. Unknown names are ignored; under `strictKeys` also those that
  /// would add a key.
  init(_ list: String?, _ switches: Set<CompatibilitySwitch> = []) {
    self.switches = switches
    if let list { read(list) }
    guard switches.contains(.strictKeys) else { return }
    (conflictRecord, tombstoneType, tombstoneTime, zoneToken, feedPosition) = (false, false, false, false, false)
  }

  private mutating func read(_ list: String) {
    for part in list.split(separator: ",") {
      let name = part.filter { $0 != " " }
      switch name {
      case "conflict-record": conflictRecord = true
      case "tombstone-type": tombstoneType = true
      case "tombstone-time": tombstoneTime = true
      case "tombstone-all": allTombstones = true
      case "expired-code": expiredCode = true
      case "zone-token": zoneToken = true
      case "feed-position": feedPosition = true
      default: if name.hasPrefix("page=") { page = Int(name.dropFirst(5)) }
      }
    }
  }

  /// The value of the header `X-Cairn-Features`.
  static func announcement(_ settings: ServerSettings) -> String {
    "conflict-record,tombstone-type,tombstone-time,tombstone-all,expired-code,zone-token,"
      + "feed-position,page=\(settings.announcedMaximum),gzip"
  }

  var options: RequestOptions {
    RequestOptions(page: page, conflictRecords: conflictRecord, allTombstones: allTombstones)
  }

  /// How answers to this request are spelled.
  func style(numbersAsStrings: Bool) -> WireStyle {
    var style = WireStyle()
    style.conflictRecord = conflictRecord
    style.tombstoneType = tombstoneType
    style.tombstoneTime = tombstoneTime
    style.namesListsLIST = switches.contains(.listType)
    style.writesOwnerName = switches.contains(.ownerName)
    style.strictKeys = switches.contains(.strictKeys)
    if numbersAsStrings { style.numbers = .strings }
    return style
  }
}
