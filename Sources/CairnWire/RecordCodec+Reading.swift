import CairnRecords

/// A field whose type the server must resolve. Its record holds a null under the same name meanwhile.
public struct UntypedField: Hashable, Sendable {
  public var name: String
  public var value: UntypedValue

  public init(name: String, value: UntypedValue) {
    self.name = name
    self.value = value
  }
}

/// One record, tombstone or failure as it stands in `records[]` or under `record`.
struct WireEntry {
  var name: String?
  var type: String?
  var changeTag: ChangeTag?
  var fields: [Field] = []
  var untyped: [UntypedField] = []
  var mismatch: WireError?
  var created: RecordStamp?
  var modified: RecordStamp?
  var parent: String?
  var zone: ZoneID?
  var isDeleted = false
  var sharing: RecordSharing?
  var errorKeys: ErrorKeys?

  var error: CloudError? { errorKeys?.error }

  /// The record, or nil where the entry has no name.
  mutating func takeRecord(in zone: ZoneID) -> Record? {
    guard let name else { return nil }
    var record = Record(
      id: RecordID(name: name, zone: zone), type: type ?? "", changeTag: changeTag,
      fields: Fields(uniqueFields: fields), created: created, modified: modified, parent: parent)
    if let sharing { record.sharing = sharing }
    return record
  }
}

extension JSONReader {
  /// Reads an entry.
  ///
  /// In answers (`isRequest` false) untyped values are typed by inference, fields of unknown types are ignored
  /// (section 13, rule 7), a value that does not fit its type fails the body, and a reference's zone that is the
  /// record's own becomes nil. In requests all of that is left to the server.
  mutating func readEntry(zone: ZoneID, isRequest: Bool) throws(WireError) -> WireEntry {
    var entry = WireEntry()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "recordName": entry.name = try readOptionalString()
      case "recordType": entry.type = try readOptionalString()
      case "recordChangeTag": entry.changeTag = try readOptionalString().map { ChangeTag($0) }
      case "fields": if try !readNull() { try readFields(into: &entry, isRequest: isRequest) }
      case "created": entry.created = try readStamp()
      case "modified": entry.modified = try readStamp()
      case "deleted": entry.isDeleted = try readNull() ? false : readBool()
      case "parent":
        if try !readNull() {
          entry.parent = try readReference().recordName
        } else if isRequest {
          var sharing = entry.sharing ?? RecordSharing()
          sharing.removesParent = true
          entry.sharing = sharing
        }
      case "zoneID": entry.zone = try readZoneID()
      case "pluginFields": try skip()
      case "serverErrorCode", "reason", "retryAfter", "redirectURL", "cause", "serverRecord":
        var keys = entry.errorKeys ?? ErrorKeys()
        if try !readErrorKey(key, into: &keys, zone: zone) { try skip() }
        entry.errorKeys = keys
      default: if try !readSharingKey(key, into: &entry.sharing, zone: zone) { try skip() }
      }
    }
    if !isRequest { entry.dropOwnZone(from: zone) }
    return entry
  }

  private mutating func readFields(into entry: inout WireEntry, isRequest: Bool) throws(WireError) {
    var fields: [Field] = []
    fields.reserveCapacity(12)
    try beginObject()
    while let key = try nextKey() {
      switch try readField() {
      case .null: fields.append(Field(key.string, nil))
      case .typed(let value): fields.append(Field(key.string, value))
      case .untyped(let value):
        let name = key.string
        if isRequest {
          fields.append(Field(name, nil))
          entry.untyped.append(UntypedField(name: name, value: value))
        } else if let kind = value.isAcceptable ? value.inferredKind : nil, let typed = value.value(as: kind) {
          fields.append(Field(name, typed))
        }
      case .mismatched(var problem):
        problem.reason = "field \(key.string): \(problem.reason)"
        guard isRequest else { throw problem }
        fields.append(Field(key.string, nil))
        entry.mismatch = entry.mismatch ?? problem
      }
    }
    entry.fields = FieldNames.withoutRepetitions(fields)
  }

  private mutating func readUser() throws(WireError) -> String? {
    if try readNull() { return nil }
    let text = try readRawString()
    if let last = repeatedUser, last.bytes.count == text.bytes.count, let place = text.bytes.baseAddress,
      last.bytes.areSame(asAt: place)
    {
      return last.name
    }
    let name = text.string
    repeatedUser = (text.bytes, name)
    return name
  }

  mutating func readStamp() throws(WireError) -> RecordStamp? {
    if try readNull() { return nil }
    var stamp = RecordStamp(timestamp: 0)
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "timestamp": if try !readNull() { stamp.timestamp = try readMilliseconds() }
      case "userRecordName": stamp.userRecordName = try readUser()
      case "deviceID":
        // Text at Apple; some servers write a number.
        if try kind() == .string { stamp.deviceID = try readString() } else { try skip() }
      default: try skip()
      }
    }
    return stamp
  }
}

extension WireEntry {
  /// Makes references inside the record's own zone relative to it.
  fileprivate mutating func dropOwnZone(from requested: ZoneID) {
    let own = zone ?? requested
    func isOwn(_ other: ZoneID) -> Bool {
      other.name == own.name
        && (other.owner == own.owner || other.owner == ZoneID.currentOwner || own.owner == ZoneID.currentOwner)
    }
    for i in fields.indices {
      guard case .reference(var reference) = fields[i].value, let zone = reference.zone, isOwn(zone) else { continue }
      reference.zone = nil
      fields[i].value = .reference(reference)
    }
  }
}

/// Tolerance of equal keys: the last value stands at the first place.
enum FieldNames {
  /// Compares all pairs while that is cheap, and hashes where there are many fields.
  static func withoutRepetitions(_ fields: [Field]) -> [Field] {
    guard hasRepetitions(fields) else { return fields }
    var places: [String: Int] = [:]
    var result: [Field] = []
    for field in fields {
      if let place = places[field.name] {
        result[place] = field
      } else {
        places[field.name] = result.count
        result.append(field)
      }
    }
    return result
  }

  private static func hasRepetitions(_ fields: [Field]) -> Bool {
    guard fields.count <= 16 else { return Set(fields.lazy.map { $0.name }).count != fields.count }
    for i in fields.indices {
      let name = fields[i].name
      for j in 0..<i where fields[j].name == name { return true }
    }
    return false
  }
}
