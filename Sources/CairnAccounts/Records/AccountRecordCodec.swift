import CairnRecords

/// A received record, read.
enum ReceivedFact: Sendable {
  case tombstone(AccountID)
  case marker(InstanceID)
  case account(AccountContent)
  case context(ContextSlot, RegisterValue)
  /// Of a newer, incompatible format: kept until understood (accounts.md A6).
  case notUnderstood(RecordKey)
  /// Kept for good, not applied and not overwritten (accounts.md A5).
  case unreadable(UnreadableReason)
}

/// Why a record is parked for good.
public enum UnreadableReason: String, Hashable, Sendable, Codable {
  /// Its name is none that this category writes.
  case name
  /// Its name and its fields, or its name and its type, disagree.
  case disagreement
  /// A field that every record of its type has is missing or malformed.
  case field
  /// A time beyond what the format allows (accounts.md A34).
  case time
}

/// Records of the four types, read and written (accounts.md section 2).
enum AccountRecordCodec {
  static let formatVersion: Int64 = 1

  enum Name {
    static let formatVersion = "formatVersion"
    static let accountID = "accountID"
    static let instanceID = "instanceID"
    static let fieldStamps = "fieldStamps"
    static let slot = "slot"
    static let time = "time"
    static let writer = "writer"
  }

  // MARK: Reading

  static func read(_ record: Record) -> ReceivedFact {
    guard let key = RecordKey(name: record.id.name) else { return .unreadable(.name) }
    guard key.type == record.type else { return .unreadable(.disagreement) }
    let version: Int64 = if case .int64(let number)? = record.fields[Name.formatVersion] { number } else { 1 }
    switch key {
    // Markers and tombstones count by name at any version.
    case .tombstone(let id):
      if version > formatVersion { return .tombstone(id) }
      return accountID(record).map { $0 == id } == .some(true) ? .tombstone(id) : .unreadable(.disagreement)
    case .marker(let id):
      if version > formatVersion { return .marker(id) }
      return text(record, Name.instanceID).flatMap { InstanceID($0) } == id ? .marker(id) : .unreadable(.disagreement)
    case .account(let id): return version > formatVersion ? .notUnderstood(key) : readAccount(record, id)
    case .context(let slot): return version > formatVersion ? .notUnderstood(key) : readContext(record, slot)
    }
  }

  private static func readAccount(_ record: Record, _ id: AccountID) -> ReceivedFact {
    guard accountID(record) == id else { return .unreadable(.disagreement) }
    var stamps: [String: Stamp] = [:]
    switch record.fields[Name.fieldStamps] {
    case nil: break
    case .bytes(let bytes)?:
      guard let decoded = FieldStamps.decode(bytes) else { return .unreadable(.time) }
      stamps = decoded
    default: return .unreadable(.field)
    }
    var content = AccountContent(id: id, fields: [:])
    for field in record.fields where !systemNames.contains(field.name) {
      content.set(field.name, field.value, stamps[field.name] ?? .zero)
    }
    // A field that was cleared travels as its stamp alone.
    for (name, stamp) in stamps where content.fields[name] == nil { content.set(name, nil, stamp) }
    clean(&content)
    return content.account == nil ? .unreadable(.field) : .account(content)
  }

  private static let systemNames: Set<String> = [Name.formatVersion, Name.accountID, Name.fieldStamps]

  /// Addresses lose what may hold a secret also when they come from elsewhere (accounts.md A4); IDs their case (A5).
  static func clean(_ content: inout AccountContent) {
    if let url = content.text(AccountContent.Name.instanceURL), let cleaned = InstanceURL.cleaned(url) {
      content.fields[AccountContent.Name.instanceURL]?.value = .string(cleaned)
    }
    if let id = content.instanceID { content.fields[AccountContent.Name.instanceID]?.value = .string(id.rawValue) }
  }

  private static func readContext(_ record: Record, _ slot: ContextSlot) -> ReceivedFact {
    guard text(record, Name.slot) == slot.rawValue else { return .unreadable(.disagreement) }
    guard case .int64(let time)? = record.fields[Name.time], let writer = text(record, Name.writer) else {
      return .unreadable(.field)
    }
    guard StampClock.isValid(time) else { return .unreadable(.time) }
    var id: AccountID?
    if record.fields[Name.accountID] != nil {
      guard let named = accountID(record) else { return .unreadable(.field) }
      id = named
    }
    return .context(slot, RegisterValue(accountID: id, stamp: Stamp(time: time, writer: writer)))
  }

  private static func text(_ record: Record, _ name: String) -> String? {
    guard case .string(let text)? = record.fields[name] else { return nil }
    return text
  }

  private static func accountID(_ record: Record) -> AccountID? {
    text(record, Name.accountID).flatMap { AccountID($0) }
  }

  // MARK: Writing

  static func account(_ content: AccountContent, _ tag: ChangeTag?, in zone: ZoneID) -> Record {
    var record = empty(.account(content.id), tag, zone)
    record.fields.set(Name.accountID, .string(content.id.rawValue))
    var stamps: [String: Stamp] = [:]
    for (name, field) in content.fields.sorted(by: { $0.key < $1.key }) {
      record.fields.set(name, field.value)
      if field.stamp != .zero { stamps[name] = field.stamp }
    }
    record.fields.set(Name.fieldStamps, .bytes(FieldStamps.encode(stamps)))
    return record
  }

  static func marker(_ id: InstanceID, _ tag: ChangeTag?, in zone: ZoneID) -> Record {
    var record = empty(.marker(id), tag, zone)
    record.fields.set(Name.instanceID, .string(id.rawValue))
    return record
  }

  static func tombstone(_ id: AccountID, _ tag: ChangeTag?, in zone: ZoneID) -> Record {
    var record = empty(.tombstone(id), tag, zone)
    record.fields.set(Name.accountID, .string(id.rawValue))
    return record
  }

  static func context(_ slot: ContextSlot, _ value: RegisterValue, _ tag: ChangeTag?, in zone: ZoneID) -> Record {
    var record = empty(.context(slot), tag, zone)
    record.fields.set(Name.slot, .string(slot.rawValue))
    record.fields.set(Name.accountID, value.accountID.map { .string($0.rawValue) })
    record.fields.set(Name.time, .int64(value.stamp.time))
    record.fields.set(Name.writer, .string(value.stamp.writer))
    return record
  }

  private static func empty(_ key: RecordKey, _ tag: ChangeTag?, _ zone: ZoneID) -> Record {
    Record(
      id: RecordID(name: key.name, zone: zone), type: key.type, changeTag: tag,
      fields: [Name.formatVersion: .int64(formatVersion)])
  }
}
