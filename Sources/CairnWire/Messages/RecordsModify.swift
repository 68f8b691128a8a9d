import CairnRecords

/// An operation as the server receives it: fields without a certain type wait for the schema.
public struct WireOperation: Hashable, Sendable {
  /// The operation. A missing record name is empty, and so is a missing type. Untyped fields are null here.
  public var operation: RecordOperation
  /// Fields for the schema to type: set them in `operation.record.fields`, then forget them here.
  public var untyped: [UntypedField]
  /// Why the entry is to be refused with BAD_REQUEST: a value that does not fit its declared type.
  public var problem: String?

  public init(_ operation: RecordOperation, untyped: [UntypedField] = [], problem: String? = nil) {
    self.operation = operation
    self.untyped = untyped
    self.problem = problem
  }
}

/// The body of records/modify (web-services section 5).
public struct ModifyRequest: WireRequest, RecordsRequest, Hashable, Sendable {
  /// The request's own zone. It is already part of every operation's record ID.
  public var zone: ZoneID?
  public var operations: [WireOperation] = []
  public var atomic = true
  /// Fields that the answer shall carry; nil means all.
  public var desiredKeys: [String]?
  public var numbersAsStrings = false
  public var getCurrentSyncToken = false

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "operations":
      if try reader.readNull() { return }
      operations.removeAll()
      try reader.beginArray()
      while try reader.nextElement() { operations.append(try Self.operation(&reader)) }
    case "atomic": atomic = try reader.readNull() ? true : reader.readBool()
    default: try readCommon(key, &reader)
    }
  }

  /// Zone of an operation: the request's, else the record's, else the default zone.
  public mutating func finish() throws(WireError) {
    guard let zone else { return }
    for i in operations.indices { operations[i].operation.record.id.zone = zone }
  }

  private static func operation(_ reader: inout JSONReader) throws(WireError) -> WireOperation {
    var kind: RecordOperation.Kind?
    var entry: WireEntry?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "operationType":
        let name = try reader.readString()
        kind = RecordOperation.Kind(rawValue: name)
        guard kind != nil else { throw reader.error(.value, "unknown operationType") }
      case "record": entry = try reader.readEntry(zone: .defaultZone, isRequest: true)
      default: try reader.skip()
      }
    }
    guard let kind else { throw reader.error(.value, "an operation without operationType") }
    guard var entry else { throw reader.error(.value, "an operation without record") }
    entry.name = entry.name ?? ""
    guard let record = entry.takeRecord(in: entry.zone ?? .defaultZone) else {
      throw reader.error(.value, "an operation without record")
    }
    return WireOperation(
      RecordOperation(kind, record, deleteTime: kind.isDelete ? record.modified?.timestamp : nil),
      untyped: entry.untyped, problem: entry.mismatch?.reason)
  }

  /// Writes the request of Cairn's client: `desiredKeys` empty, because an answer's tags are all that it needs.
  ///
  /// - Parameter style: ``WireStyle/client``; with `tombstoneTime` deletes carry their time.
  public static func encode(
    zone: ZoneID, _ operations: [RecordOperation], atomic: Bool, style: WireStyle = .client,
    into writer: inout JSONWriter
  ) {
    writer.beginObject()
    writer.key("zoneID")
    writer.zoneID(zone)
    writer.pair("atomic", atomic)
    writer.pair("numbersAsStrings", true)
    writer.pair("desiredKeys", [])
    writer.key("operations")
    writer.beginArray()
    for operation in operations {
      writer.beginObject()
      writer.pair("operationType", operation.kind.rawValue)
      writer.key("record")
      writer.operationRecord(operation, style)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
  }
}

/// The answer to records/modify: one entry per operation, in their order.
public struct ModifyAnswer: Hashable, Sendable {
  public var outcomes: [OperationOutcome] = []
  /// Where the zone's feed stood before and after (section 15, `feed-position`); nil unless both tokens are there.
  public var position: FeedStep?

  /// - Parameters:
  ///   - syncToken: the zone's token, where it was asked for (`getCurrentSyncToken`).
  ///   - position: says it better, where `feed-position` was asked for.
  public static func encode(
    _ outcomes: [OperationOutcome], style: WireStyle, desiredKeys: Set<String>? = nil, syncToken: ChangeToken? = nil,
    position: FeedStep? = nil, into writer: inout JSONWriter
  ) {
    writer.beginRecords()
    for outcome in outcomes { writer.outcome(outcome, style, desiredKeys: desiredKeys) }
    writer.endRecords(previousSyncToken: position?.before, syncToken: position?.after ?? syncToken)
  }

  /// Reads the answer to `operations`. Another number or order of entries fails.
  public static func decode(_ body: [UInt8], to operations: [RecordOperation]) throws(WireError) -> ModifyAnswer {
    try JSONReader.parse(body) { (reader) throws(WireError) in
      var answer = ModifyAnswer()
      var (before, after): (String?, String?)
      answer.outcomes.reserveCapacity(operations.count)
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "records": try answer.read(&reader, operations)
        case "previousSyncToken": before = try reader.readToken()
        case "syncToken": after = try reader.readToken()
        default: try reader.skip()
        }
      }
      guard answer.outcomes.count == operations.count else {
        throw reader.error(.value, "fewer entries than operations")
      }
      if let before, let after { answer.position = FeedStep(before: ChangeToken(before), after: ChangeToken(after)) }
      return answer
    }
  }

  private mutating func read(_ reader: inout JSONReader, _ operations: [RecordOperation]) throws(WireError) {
    try reader.beginArray()
    while try reader.nextElement() {
      guard outcomes.count < operations.count else { throw reader.error(.value, "more entries than operations") }
      outcomes.append(try Self.outcome(&reader, operations[outcomes.count]))
    }
  }

  private static func outcome(
    _ reader: inout JSONReader, _ operation: RecordOperation
  ) throws(WireError) -> OperationOutcome {
    let id = operation.record.id
    var entry = try reader.readEntry(zone: id.zone, isRequest: false)
    if let name = entry.name, name != id.name, !id.name.isEmpty {
      throw reader.error(.value, "the answer's records are not in the order of the operations")
    }
    if let error = entry.error { return .failed(id, error) }
    if operation.kind.isDelete { return .deleted(id) }
    guard !entry.isDeleted else { throw reader.error(.value, "a save is answered as a delete") }
    if entry.type == nil { entry.type = operation.record.type }
    guard let record = entry.takeRecord(in: id.zone), record.changeTag != nil else {
      throw reader.error(.value, "a saved record comes without name or change tag")
    }
    return .saved(record)
  }
}

extension JSONWriter {
  /// Opens `{"records":[`; write entries, then ``endRecords(previousSyncToken:syncToken:)``.
  public mutating func beginRecords() {
    beginObject()
    key("records")
    beginArray()
  }

  public mutating func endRecords(previousSyncToken: ChangeToken? = nil, syncToken: ChangeToken? = nil) {
    endArray()
    if let previousSyncToken { pair("previousSyncToken", previousSyncToken.rawValue) }
    if let syncToken { pair("syncToken", syncToken.rawValue) }
    endObject()
  }
}
