import CairnRecords

/// A subscription as it travels (web-services section 11).
public struct WireSubscription: Hashable, Sendable {
  public var id = ""
  /// `query`, `zone` or `database`.
  public var type = ""
  public var query: WireQuery?
  public var zone: ZoneID?
  public var zoneWide: Bool?
  public var firesOn: [String] = []
  public var firesOnce = false
  /// The members that answers give back as they came.
  public var members: [JSONMember] = []

  public init() {}

  /// Keys that are kept; names and zones are spelled anew in every answer.
  private static let kept = ["subscriptionType", "query", "firesOn", "firesOnce", "notificationInfo"]

  init(_ reader: inout JSONReader) throws(WireError) {
    let json = try reader.readValue()
    guard case .object(let members) = json else { throw reader.error(.value, "a subscription is an object") }
    for member in members where Self.kept.contains(member.key) && member.value != .null {
      self.members.removeAll { $0.key == member.key }
      self.members.append(member)
    }
    id = try Self.text(json["subscriptionID"], reader) ?? ""
    type = try Self.text(json["subscriptionType"], reader) ?? ""
    if let part = json["query"] {
      query = try JSONReader.parse(part.encoded) { (reader) throws(WireError) in try reader.readQuery() }
    }
    if let part = json["zoneID"] {
      zone = try JSONReader.parse(part.encoded) { (reader) throws(WireError) in try reader.readZoneID() }
    }
    switch json["zoneWide"] {
    case .bool(let flag)?: zoneWide = flag
    case nil, .null?: break
    default: throw reader.error(.value, "zoneWide is true or false")
    }
    switch json["firesOnce"] {
    case .bool(let flag)?: firesOnce = flag
    case nil, .null?: break
    default: throw reader.error(.value, "firesOnce is true or false")
    }
    switch json["firesOn"] {
    case .array(let names)?:
      for name in names {
        guard let text = name.string else { throw reader.error(.value, "firesOn holds names of events") }
        firesOn.append(text)
      }
    case nil, .null?: break
    default: throw reader.error(.value, "firesOn is a list")
    }
  }

  private static func text(_ json: JSONValue?, _ reader: JSONReader) throws(WireError) -> String? {
    switch json {
    case nil, .null?: return nil
    case .string(let text)?: return text
    default: throw reader.error(.value, "a string is expected")
    }
  }
}

/// The body of subscriptions/modify.
public struct SubscriptionsModifyRequest: WireRequest, Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable { case create, update, delete }

  public struct Operation: Hashable, Sendable {
    public var kind: Kind
    public var subscription: WireSubscription
  }

  public var operations: [Operation] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    guard case "operations" = key else { return try reader.skip() }
    if try reader.readNull() { return }
    operations.removeAll()
    try reader.beginArray()
    while try reader.nextElement() {
      var kind: Kind?
      var subscription: WireSubscription?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "operationType":
          kind = Kind(rawValue: try reader.readString())
          guard kind != nil else { throw reader.error(.value, "unknown operationType") }
        case "subscription": subscription = try WireSubscription(&reader)
        default: try reader.skip()
        }
      }
      guard let kind else { throw reader.error(.value, "an operation without operationType") }
      guard let subscription else { throw reader.error(.value, "an operation without subscription") }
      operations.append(Operation(kind: kind, subscription: subscription))
    }
  }

  /// Writes the request for one database subscription.
  public static func encodeDatabaseSubscription(_ id: String, into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("operations")
    writer.beginArray()
    writer.beginObject()
    writer.pair("operationType", "create")
    writer.key("subscription")
    writer.beginObject()
    writer.pair("subscriptionID", id)
    writer.pair("subscriptionType", "database")
    writer.endObject()
    writer.endObject()
    writer.endArray()
    writer.endObject()
  }
}

/// The body of subscriptions/lookup.
public struct SubscriptionsLookupRequest: WireRequest, Hashable, Sendable {
  public var ids: [String] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    guard case "subscriptions" = key else { return try reader.skip() }
    if try reader.readNull() { return }
    ids.removeAll()
    try reader.beginArray()
    while try reader.nextElement() {
      var id: String?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        if case "subscriptionID" = key { id = try reader.readOptionalString() } else { try reader.skip() }
      }
      guard let id else { throw reader.error(.value, "a look-up without subscriptionID") }
      ids.append(id)
    }
  }
}

/// The answer of the subscription calls, one entry per subscription or operation in order.
public enum SubscriptionsAnswer {
  public enum Entry: Sendable {
    case subscription(id: String, zone: ZoneID?, zoneWide: Bool?, members: [JSONMember])
    case deleted(String)
    case failed(String, CloudError)
  }

  public static func encode(_ entries: [Entry], style: WireStyle, into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("subscriptions")
    writer.beginArray()
    for entry in entries {
      writer.beginObject()
      switch entry {
      case .subscription(let id, let zone, let zoneWide, let members):
        writer.pair("subscriptionID", id)
        for member in members {
          writer.key(member.key)
          writer.value(member.value)
        }
        if let zoneWide { writer.pair("zoneWide", zoneWide) }
        if let zone {
          writer.key("zoneID")
          writer.answeredZoneID(zone, style)
        }
      case .deleted(let id):
        writer.pair("subscriptionID", id)
        writer.pair("deleted", true)
      case .failed(let id, let error):
        writer.pair("subscriptionID", id)
        writer.errorKeys(error, style)
      }
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }

  /// The failures of the entries, by order; nil for what was done.
  public static func decodeFailures(_ body: [UInt8]) throws(WireError) -> [CloudError?] {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var failures: [CloudError?] = []
      try reader.beginObject()
      while let key = try reader.nextKey() {
        guard case "subscriptions" = key else {
          try reader.skip()
          continue
        }
        try reader.beginArray()
        while try reader.nextElement() {
          var errors = ErrorKeys()
          try reader.beginObject()
          while let key = try reader.nextKey() {
            if try !reader.readErrorKey(key, into: &errors, zone: .defaultZone) { try reader.skip() }
          }
          failures.append(errors.error)
        }
      }
      return failures
    }
  }
}
