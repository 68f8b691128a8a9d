import CairnRecords
import CairnServerCore
import CairnWire

extension AccountOverview {
  /// Writes the answer of `/console/overview` (web-services section 17).
  func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.pair("user", user.name)
    writer.pair("userRecordName", user.recordName)
    writer.pair("bytes", usage.bytes)
    if let quota = usage.quota { writer.pair("quota", quota) }
    writer.key("databases")
    writer.beginArray()
    for database in databases { database.encode(into: &writer) }
    writer.endArray()
    writer.key("devices")
    writer.beginArray()
    for device in devices {
      writer.beginObject()
      writer.pair("name", device.name)
      writer.pair("container", device.container)
      writer.pair("firstSeen", device.firstSeen)
      writer.pair("lastSeen", device.lastSeen)
      writer.endObject()
    }
    writer.endArray()
    writer.key("days")
    writer.beginArray()
    for day in days {
      writer.beginObject()
      writer.pair("day", day.day)
      writer.pair("bytes", day.bytes)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

extension AccountOverview.Database {
  fileprivate func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.pair("container", scope.container)
    writer.pair("environment", scope.environment.rawValue)
    writer.pair("database", scope.kind.rawValue)
    writer.key("zones")
    writer.beginArray()
    for zone in zones {
      writer.beginObject()
      writer.pair("name", zone.name)
      writer.pair("bytes", zone.bytes)
      if let newest = zone.newestChange { writer.pair("newestChange", newest) }
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

extension [StoredTypeCount] {
  /// Writes the answer of `/console/types`.
  func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("types")
    writer.beginArray()
    for count in self {
      writer.beginObject()
      writer.pair("name", count.type)
      writer.pair("live", count.live)
      writer.pair("deleted", count.deleted)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}
