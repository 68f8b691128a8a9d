import CairnRecords

/// The body of assets/upload and of assets/rereference (web-services section 11).
public struct AssetsRequest: WireRequest, Hashable, Sendable {
  /// A field of a record. In assets/upload the name may be missing, in assets/rereference the type.
  public struct Item: Hashable, Sendable {
    public var recordName: String
    public var recordType: String
    public var fieldName: String

    public init(recordName: String = "", recordType: String = "", fieldName: String = "") {
      self.recordName = recordName
      self.recordType = recordType
      self.fieldName = fieldName
    }
  }

  public var zone: ZoneID?
  public var items: [Item] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "tokens", "assets":
      if try reader.readNull() { return }
      items.removeAll()
      try reader.beginArray()
      while try reader.nextElement() {
        var item = Item()
        try reader.beginObject()
        while let key = try reader.nextKey() {
          switch key {
          case "recordName": item.recordName = try reader.readOptionalString() ?? ""
          case "recordType": item.recordType = try reader.readOptionalString() ?? ""
          case "fieldName": item.fieldName = try reader.readOptionalString() ?? ""
          default: try reader.skip()
          }
        }
        items.append(item)
      }
    case "zoneID": zone = try reader.readZoneID()
    default: try reader.skip()
    }
  }

  /// Writes the body of assets/upload.
  public static func encode(zone: ZoneID, _ items: [Item], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("zoneID")
    writer.zoneID(zone)
    writer.key("tokens")
    writer.beginArray()
    for item in items {
      writer.beginObject()
      writer.pair("recordName", item.recordName)
      writer.pair("recordType", item.recordType)
      writer.pair("fieldName", item.fieldName)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

/// The answer to assets/upload.
public enum AssetsUploadAnswer {
  /// Where the bytes of a field go.
  public struct Target: Hashable, Sendable {
    public var recordName: String
    public var fieldName: String
    public var url: String

    public init(recordName: String, fieldName: String, url: String) {
      self.recordName = recordName
      self.fieldName = fieldName
      self.url = url
    }
  }

  public static func encode(_ targets: [Target], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("tokens")
    writer.beginArray()
    for target in targets {
      writer.beginObject()
      writer.pair("recordName", target.recordName)
      writer.pair("fieldName", target.fieldName)
      writer.pair("url", target.url)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }

  public static func decode(_ body: [UInt8]) throws(WireError) -> [Target] {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var targets: [Target]?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "tokens":
          if try reader.readNull() { break }
          var found: [Target] = []
          try reader.beginArray()
          while try reader.nextElement() { found.append(try target(&reader)) }
          targets = found
        default: try reader.skip()
        }
      }
      guard let targets else { throw reader.error(.value, "the answer holds no tokens") }
      return targets
    }
  }

  private static func target(_ reader: inout JSONReader) throws(WireError) -> Target {
    var target = Target(recordName: "", fieldName: "", url: "")
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "recordName": target.recordName = try reader.readOptionalString() ?? ""
      case "fieldName": target.fieldName = try reader.readOptionalString() ?? ""
      case "url": target.url = try reader.readOptionalString() ?? ""
      default: try reader.skip()
      }
    }
    return target
  }
}

/// The answer to an upload: `{"singleFile":{…}}`.
public enum AssetReceipt {
  public static func encode(_ asset: Asset, into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("singleFile")
    writer.asset(asset)
    writer.endObject()
  }

  public static func decode(_ body: [UInt8]) throws(WireError) -> Asset {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var asset: Asset?
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "singleFile": if try !reader.readNull() { asset = try reader.readAsset() }
        default: try reader.skip()
        }
      }
      guard let asset, asset.receipt != nil else { throw reader.error(.value, "the answer holds no receipt") }
      return asset
    }
  }
}

/// The answer to assets/rereference, one entry per field in order: the dictionary to put into another field.
public enum AssetsRereferenceAnswer {
  public static func encode(
    _ entries: [(AssetsRequest.Item, Result<Asset, CloudError>)], style: WireStyle, into writer: inout JSONWriter
  ) {
    writer.beginObject()
    writer.key("assets")
    writer.beginArray()
    for (item, result) in entries {
      writer.beginObject()
      switch result {
      // Nothing but the asset: a dictionary with a recordName would be taken for a reference where it is put.
      case .success(let asset): writer.assetPairs(asset, style)
      case .failure(let error):
        writer.pair("recordName", item.recordName)
        writer.pair("fieldName", item.fieldName)
        writer.errorKeys(error, style)
      }
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}
