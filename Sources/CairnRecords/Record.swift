/// A field of a record. A nil value is an explicit null.
public struct Field: Hashable, Sendable {
  public var name: String
  public var value: FieldValue?

  public init(_ name: String, _ value: FieldValue?) {
    self.name = name
    self.value = value
  }
}

/// The fields of a record, in the order in which they were written, each name once.
///
/// Look-up is linear: records have few fields, and a small array is faster to build and to walk than a dictionary.
public struct Fields: Hashable, Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
  public private(set) var storage: [Field]

  public init() { storage = [] }

  /// Takes fields whose names are known to differ.
  public init(uniqueFields: [Field]) { storage = uniqueFields }

  public init(dictionaryLiteral elements: (String, FieldValue?)...) {
    storage = []
    for (name, value) in elements { set(name, value) }
  }

  public var startIndex: Int { storage.startIndex }
  public var endIndex: Int { storage.endIndex }
  public subscript(position: Int) -> Field { storage[position] }

  public mutating func reserveCapacity(_ n: Int) { storage.reserveCapacity(n) }

  public func firstIndex(named name: String) -> Int? { storage.firstIndex { $0.name == name } }

  public func contains(name: String) -> Bool { firstIndex(named: name) != nil }

  /// The value under a name; nil when the field is null or absent.
  public subscript(name: String) -> FieldValue? {
    get { firstIndex(named: name).flatMap { storage[$0].value } }
    set { set(name, newValue) }
  }

  /// Sets a field, to null when `value` is nil.
  public mutating func set(_ name: String, _ value: FieldValue?) {
    if let i = firstIndex(named: name) {
      storage[i].value = value
    } else {
      storage.append(Field(name, value))
    }
  }

  /// Appends a field whose name is known to be new.
  public mutating func append(_ name: String, _ value: FieldValue?) { storage.append(Field(name, value)) }

  public mutating func remove(_ name: String) { storage.removeAll { $0.name == name } }
}

/// When, by whom and where a record was created or last modified, as the server tells it.
public struct RecordStamp: Hashable, Sendable {
  /// Milliseconds since 1970.
  public var timestamp: Int64
  public var userRecordName: String?
  public var deviceID: String?

  public init(timestamp: Int64, userRecordName: String? = nil, deviceID: String? = nil) {
    self.timestamp = timestamp
    self.userRecordName = userRecordName
    self.deviceID = deviceID
  }
}

/// A record as it travels: identity, type, system fields and the user's fields.
public struct Record: Hashable, Sendable {
  public var id: RecordID
  public var type: String
  /// The tag of the stored version that this record is or was made from; nil for a record that was never stored.
  public var changeTag: ChangeTag?
  public var fields: Fields
  public var created: RecordStamp?
  public var modified: RecordStamp?
  /// Name of the parent record in the hierarchy that shares follow.
  public var parent: String?

  public init(
    id: RecordID, type: String, changeTag: ChangeTag? = nil, fields: Fields = Fields(), created: RecordStamp? = nil,
    modified: RecordStamp? = nil, parent: String? = nil
  ) {
    self.id = id
    self.type = type
    self.changeTag = changeTag
    self.fields = fields
    self.created = created
    self.modified = modified
    self.parent = parent
  }
}

/// A record's end, as a change feed reports it.
public struct RecordDeletion: Hashable, Sendable {
  public var id: RecordID
  /// The type of the deleted record, where the server tells it.
  public var type: String?
  /// Time of the delete in ms since 1970, where the server tells it (web-services section 15, `tombstone-time`).
  public var time: Int64?

  public init(id: RecordID, type: String? = nil, time: Int64? = nil) {
    self.id = id
    self.type = type
    self.time = time
  }
}
