import CairnRecords

/// The body of records/resolve and records/accept.
public struct ShortGUIDsRequest: WireRequest, Hashable, Sendable {
  public struct Item: Hashable, Sendable {
    public var guid: String
    public var wantsRoot = false
    /// Fields of the root that are wanted; nil for all.
    public var rootKeys: [String]?
  }

  public var items: [Item] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "shortGUIDs":
      if try reader.readNull() { return }
      items.removeAll()
      try reader.beginArray()
      while try reader.nextElement() { items.append(try Self.item(&reader)) }
    default: try reader.skip()
    }
  }

  private static func item(_ reader: inout JSONReader) throws(WireError) -> Item {
    if try reader.kind() == .string { return Item(guid: try reader.readString()) }
    var item = Item(guid: "")
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "value": item.guid = try reader.readOptionalString() ?? ""
      case "shouldFetchRootRecord": item.wantsRoot = try reader.readFlag()
      case "rootRecordDesiredKeys": item.rootKeys = try reader.readStrings()
      default: try reader.skip()
      }
    }
    guard !item.guid.isEmpty else { throw reader.error(.value, "a short GUID without value") }
    return item
  }
}

/// One result of records/resolve and records/accept.
public struct ShareMetadata: Hashable, Sendable {
  public var guid: String
  public var container: String
  public var environment: String
  /// The database in which the caller finds it: `PRIVATE` or `SHARED`.
  public var databaseScope: String
  public var zone: ZoneID
  public var rootName: String
  public var root: Record?
  public var share: Record
  public var owner: UserIdentity
  /// The caller.
  public var participant: ShareParticipant

  public init(
    guid: String, container: String, environment: String, databaseScope: String, zone: ZoneID, rootName: String,
    root: Record? = nil, share: Record, owner: UserIdentity, participant: ShareParticipant
  ) {
    self.guid = guid
    self.container = container
    self.environment = environment
    self.databaseScope = databaseScope
    self.zone = zone
    self.rootName = rootName
    self.root = root
    self.share = share
    self.owner = owner
    self.participant = participant
  }
}

/// The answer to records/resolve and records/accept: results in the order of the GUIDs.
public enum SharesAnswer {
  public static func encode(
    _ results: [(guid: String, result: Result<ShareMetadata, CloudError>)], style: WireStyle,
    into writer: inout JSONWriter
  ) {
    writer.beginObject()
    writer.key("results")
    writer.beginArray()
    for (guid, result) in results {
      writer.beginObject()
      writer.key("shortGUID")
      writer.beginObject()
      writer.pair("value", guid)
      writer.endObject()
      switch result {
      case .success(let found): writer.metadata(found, style)
      case .failure(let error): writer.errorKeys(error, style)
      }
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

extension JSONWriter {
  fileprivate mutating func metadata(_ found: ShareMetadata, _ style: WireStyle) {
    pair("containerIdentifier", found.container)
    pair("environment", found.environment)
    pair("databaseScope", found.databaseScope)
    key("zoneID")
    answeredZoneID(found.zone, style)
    pair("rootRecordName", found.rootName)
    if let root = found.root {
      key("rootRecord")
      record(root, style)
    }
    key("share")
    record(found.share, style)
    key("ownerIdentity")
    identity(found.owner)
    pair("participantType", found.participant.kind.rawValue)
    pair("participantStatus", found.participant.status.rawValue)
    pair("participantPermission", found.participant.permission.rawValue)
  }
}
