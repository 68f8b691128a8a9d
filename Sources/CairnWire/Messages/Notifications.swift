import CairnRecords

/// The body of tokens/create and tokens/register, and the answer to the former (web-services section 11).
public struct CourierMessage: WireRequest, Hashable, Sendable {
  public var apnsEnvironment = ""
  public var apnsToken = ""
  public var webcourierURL = ""

  public init() {}

  public init(environment: String, token: String, url: String) {
    apnsEnvironment = environment
    apnsToken = token
    webcourierURL = url
  }

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "apnsEnvironment": apnsEnvironment = try reader.readOptionalString() ?? ""
    case "apnsToken": apnsToken = try reader.readOptionalString() ?? ""
    case "webcourierURL": webcourierURL = try reader.readOptionalString() ?? ""
    default: try reader.skip()
    }
  }

  public func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    if !apnsEnvironment.isEmpty { writer.pair("apnsEnvironment", apnsEnvironment) }
    if !apnsToken.isEmpty { writer.pair("apnsToken", apnsToken) }
    if !webcourierURL.isEmpty { writer.pair("webcourierURL", webcourierURL) }
    writer.endObject()
  }
}

/// What a long poll answers.
public struct NotificationMessage: Hashable, Sendable {
  public var name: String
  public var container: String
  public var subscription: String
  public var zone: ZoneID
  /// The record and what happened to it (1 create, 2 update, 3 delete), for a query's subscription.
  public var record: (name: String, event: Int64)?

  public init(
    name: String, container: String, subscription: String, zone: ZoneID, record: (name: String, event: Int64)? = nil
  ) {
    self.name = name
    self.container = container
    self.subscription = subscription
    self.zone = zone
    self.record = record
  }

  public static func == (a: Self, b: Self) -> Bool {
    a.name == b.name && a.container == b.container && a.subscription == b.subscription && a.zone == b.zone
      && a.record?.name == b.record?.name && a.record?.event == b.record?.event
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(name) }

  public func encode(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("aps")
    writer.beginObject()
    writer.endObject()
    writer.key("ck")
    writer.beginObject()
    writer.pair("nid", name)
    writer.pair("cid", container)
    writer.key(record == nil ? "fet" : "qry")
    writer.beginObject()
    writer.pair("sid", subscription)
    if let record {
      writer.pair("rid", record.name)
      writer.pair("fo", record.event)
    }
    writer.pair("zid", zone.name)
    writer.pair("zoid", zone.owner)
    writer.endObject()
    writer.endObject()
    writer.endObject()
  }
}
