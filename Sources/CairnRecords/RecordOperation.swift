/// One element of a modify request (web-services section 5).
public struct RecordOperation: Hashable, Sendable {
  /// The words of the protocol (web-services section 5).
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    case create, update, forceUpdate, replace, forceReplace, delete, forceDelete

    public var isDelete: Bool { self == .delete || self == .forceDelete }
  }

  public var kind: Kind
  /// The record to save; for deletes only its id and change tag count.
  public var record: Record
  /// The client's own time of a delete, ms since 1970 (web-services section 15, `tombstone-time`).
  public var deleteTime: Int64?

  public init(_ kind: Kind, _ record: Record, deleteTime: Int64? = nil) {
    self.kind = kind
    self.record = record
    self.deleteTime = deleteTime
  }
}

/// What a server did with one operation.
public enum OperationOutcome: Hashable, Sendable {
  /// Stored; the record carries its new change tag. Its fields may be limited to those that were asked for.
  case saved(Record)
  case deleted(RecordID)
  case failed(RecordID, CloudError)
}

/// One page of a zone's change feed.
public struct ZonePage: Hashable, Sendable {
  public var zone: ZoneID
  public var records: [Record]
  public var deletions: [RecordDeletion]
  /// The position after this page. It must become durable no earlier than the page's content.
  public var token: ChangeToken
  public var moreComing: Bool

  public init(
    zone: ZoneID, records: [Record], deletions: [RecordDeletion], token: ChangeToken, moreComing: Bool
  ) {
    self.zone = zone
    self.records = records
    self.deletions = deletions
    self.token = token
    self.moreComing = moreComing
  }
}

/// One page of a database's change feed: which zones changed.
public struct DatabasePage: Hashable, Sendable {
  public var changed: [ZoneID]
  public var deleted: [ZoneID]
  public var token: ChangeToken
  public var moreComing: Bool

  public init(changed: [ZoneID], deleted: [ZoneID], token: ChangeToken, moreComing: Bool) {
    self.changed = changed
    self.deleted = deleted
    self.token = token
    self.moreComing = moreComing
  }
}
