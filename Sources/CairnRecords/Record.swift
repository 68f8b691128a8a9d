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

  /// The place of a field; nil where there is none of that name.
  public func firstIndex(named name: String) -> Int? { storage.firstIndex { $0.name == name } }

  /// Whether there is a field of that name, null or not.
  public func contains(name: String) -> Bool { firstIndex(named: name) != nil }

  /// Whether some field is an asset.
  public var hasAssets: Bool {
    // Asked of every record that comes: by index, as a loop over elements would retain each.
    storage.withUnsafeBufferPointer { fields in
      for i in fields.indices { if case .asset? = fields[i].value { return true } }
      return false
    }
  }

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

  /// Removes a field, which is more than setting it to null.
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
///
/// A value: copies share their content until one of them is changed, so that records are handed on at no cost.
public struct Record: Sendable {
  private var content: Content

  public init(
    id: RecordID, type: String, changeTag: ChangeTag? = nil, fields: Fields = Fields(), created: RecordStamp? = nil,
    modified: RecordStamp? = nil, parent: String? = nil
  ) {
    content = Content(id, type, changeTag, fields, created, modified, parent)
  }

  public var id: RecordID {
    _read { yield content.id }
    _modify { yield &own().id }
  }
  public var type: String {
    _read { yield content.type }
    _modify { yield &own().type }
  }
  /// The tag of the stored version that this record is or was made from; nil for a record that was never stored.
  public var changeTag: ChangeTag? {
    _read { yield content.changeTag }
    _modify { yield &own().changeTag }
  }
  public var fields: Fields {
    _read { yield content.fields }
    _modify { yield &own().fields }
  }
  public var created: RecordStamp? {
    _read { yield content.created }
    _modify { yield &own().created }
  }
  public var modified: RecordStamp? {
    _read { yield content.modified }
    _modify { yield &own().modified }
  }
  /// Name of the parent record in the hierarchy that shares follow.
  public var parent: String? {
    _read { yield content.parent }
    _modify { yield &own().parent }
  }
  /// What the record says about sharing; nil for nearly every record.
  public var sharing: RecordSharing? {
    get { content.sharing?.value }
    set { own().sharing = newValue.map(SharingBox.init) }
  }

  private mutating func own() -> Content {
    if !isKnownUniquelyReferenced(&content) { content = content.copy() }
    return content
  }

  // Unchecked, both: it is changed only through the one record that refers to it.
  private final class Content: @unchecked Sendable {
    @exclusivity(unchecked) var id: RecordID
    @exclusivity(unchecked) var type: String
    @exclusivity(unchecked) var changeTag: ChangeTag?
    @exclusivity(unchecked) var fields: Fields
    @exclusivity(unchecked) var created: RecordStamp?
    @exclusivity(unchecked) var modified: RecordStamp?
    @exclusivity(unchecked) var parent: String?
    @exclusivity(unchecked) var sharing: SharingBox?

    init(
      _ id: RecordID, _ type: String, _ changeTag: ChangeTag?, _ fields: Fields, _ created: RecordStamp?,
      _ modified: RecordStamp?, _ parent: String?
    ) {
      (self.id, self.type, self.changeTag, self.fields) = (id, type, changeTag, fields)
      (self.created, self.modified, self.parent) = (created, modified, parent)
    }

    func copy() -> Content {
      let copy = Content(id, type, changeTag, fields, created, modified, parent)
      copy.sharing = sharing
      return copy
    }
  }

  /// Keeps records small that have nothing to do with sharing.
  private final class SharingBox: Sendable {
    let value: RecordSharing

    init(_ value: RecordSharing) { self.value = value }
  }
}

extension Record: Hashable {
  public static func == (a: Record, b: Record) -> Bool {
    let (x, y) = (a.content, b.content)
    if x === y { return true }
    return x.id == y.id && x.type == y.type && x.changeTag == y.changeTag && x.fields == y.fields
      && x.created == y.created && x.modified == y.modified && x.parent == y.parent
      && x.sharing?.value == y.sharing?.value
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(id)
    hasher.combine(changeTag)
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
