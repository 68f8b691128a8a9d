import CairnRecords

/// A records/modify request.
public struct Modification: Sendable {
  public var operations: [IncomingOperation]
  public var atomic: Bool
  /// Names of the fields that answers carry; nil for all.
  public var desiredKeys: [String]?
  /// The zone whose token the answer carries (`getCurrentSyncToken`).
  public var tokenZone: ZoneID?
  /// The zone of which the answer tells where its feed stood before and after (`feed-position`).
  public var positionZone: ZoneID?
  /// The client that asks, by the name that it chose (`clientId`): it is not told of its own changes.
  public var clientID: String?

  public init(
    operations: [IncomingOperation], atomic: Bool = true, desiredKeys: [String]? = nil, tokenZone: ZoneID? = nil,
    positionZone: ZoneID? = nil
  ) {
    self.operations = operations
    self.atomic = atomic
    self.desiredKeys = desiredKeys
    self.tokenZone = tokenZone
    self.positionZone = positionZone
  }
}

/// One operation as it came in.
///
/// An empty record name means that the client sent none, an empty record type likewise.
public struct IncomingOperation: Sendable {
  public var operation: RecordOperation
  /// Fields that came without a type, whose value was read by its looks (web-services section 7, rule 3).
  public var untypedFields: [String]
  /// What is wrong with the operation already; it fails with this.
  public var failure: CloudError?

  public init(_ operation: RecordOperation, untypedFields: [String] = [], failure: CloudError? = nil) {
    self.operation = operation
    self.untypedFields = untypedFields
    self.failure = failure
  }
}

/// The answer to a modify or lookup request.
public struct ModificationOutcome: Sendable {
  /// One per operation, in order.
  public var outcomes: [OperationOutcome]
  public var token: ChangeToken?
  /// Nil where it was not asked for, and for a zone that does not exist or has no feed.
  public var position: FeedStep?
  /// What subscriptions say of it; told once it is durable.
  var notifications: [News] = []
}

/// The answer to a lookup.
public struct LookupOutcome: Sendable {
  /// One per name, in order.
  public var records: [Result<Record, CloudError>]
  public var token: ChangeToken?
}

/// One record that a lookup asks for.
public struct LookupItem: Sendable {
  public var name: String
  /// Overrides the request's fields; nil for those.
  public var desiredKeys: [String]?

  public init(name: String, desiredKeys: [String]? = nil) {
    self.name = name
    self.desiredKeys = desiredKeys
  }
}
