import CairnRecords

/// The operations of one request in one zone: judged first, stored then (web-services section 5).
///
/// Invariant: nothing is written before every operation has been judged, so an atomic request that fails has written
/// nothing.
struct ZoneModification {
  /// One operation on its way.
  final class Step {
    var index: Int
    var incoming: IncomingOperation
    var name: String
    /// The row of that name, live or a tombstone.
    var before: StoredRecord?
    /// The record's fields after the request; nil for a delete.
    var fields: Fields?
    var type = ""
    var parent: String?
    var references: [StoredReference] = []
    /// Digests of the assets of the record after the request.
    var assets: Set<[UInt8]> = []
    /// Bytes of the assets of the record after the request.
    var assetBytes: Int64 = 0
    /// What the operation adds to the usage of whom; known once quotas have been judged.
    var growth: (payer: Int64, bytes: Int64) = (0, 0)
    var failure: CloudError?
    /// A delete that deletes nothing: a forced one of what is not there, or a participant's one of a share.
    var isNothing = false
    /// What the record says about sharing, where it is a share.
    var share: ShareChange?
    /// The share that the caller leaves.
    var leaves: StoredShare?
    var after: StoredRecord?

    init(index: Int, incoming: IncomingOperation, name: String) {
      self.index = index
      self.incoming = incoming
      self.name = name
    }

    var kind: RecordOperation.Kind { incoming.operation.kind }
    var isSave: Bool { failure == nil && !kind.isDelete }
    var isDelete: Bool { failure == nil && kind.isDelete && !isNothing }
    var live: StoredRecord? { before.flatMap { $0.isLive ? $0 : nil } }
  }

  let server: CloudServer
  let zone: StoredZone
  let caller: Caller
  let database: StoredDatabase
  let now: Int64
  let isAtomic: Bool
  var steps: [Step] = []
  /// Records that go with their target (`DELETE_SELF`), in the order of discovery.
  var cascade: [StoredRecord] = []
  /// The position of the last change that an operation names; nil while nothing is stored.
  private(set) var lastOwnPosition: Int64?
  /// Whether records were stored again that no operation names.
  var hasRenewed = false
  /// By user, the records of which the feed of this zone in their shared database has news.
  var sharedNews: [Int64: Set<String>] = [:]

  /// The database that gives the zone's positions.
  private var positions: Int64 { zone.view?.database ?? database.key }

  init(
    server: CloudServer, zone: StoredZone, caller: Caller, database: StoredDatabase, now: Int64, isAtomic: Bool
  ) {
    self.server = server
    self.zone = zone
    self.caller = caller
    self.database = database
    self.now = now
    self.isAtomic = isAtomic
  }

  // MARK: Judging

  mutating func plan(
    _ operations: [(Int, IncomingOperation)], _ schema: inout SchemaMemory, _ reader: any StorageReader
  ) throws {
    let schemaBefore = schema
    var names = Set<String>(minimumCapacity: operations.count)
    steps.reserveCapacity(operations.count)
    try reader.prefetch(
      zone.key, named: operations.map { $0.1.operation.record.id.name },
      referrersOf: operations.filter { $0.1.operation.kind.isDelete }.map { $0.1.operation.record.id.name })
    for (index, incoming) in operations {
      var name = incoming.operation.record.id.name
      if name.isEmpty { name = server.randomness.recordName() }
      guard names.insert(name).inserted else {
        throw CloudError(.badRequest, "Record '\(name)' occurs more than once in the request")
      }
      let step = Step(index: index, incoming: incoming, name: name)
      let before = schema
      do { try judge(step, &schema, reader) } catch let error as CloudError {
        step.failure = error
        schema = before
      }
      steps.append(step)
    }
    if !(isAtomic && hasFailure) {
      try judgeSharedParents(reader)
      // What a delete frees counts only where it is carried out, so quotas are judged last; what they fail may take
      // others along.
      repeat { try judgeReferences(reader) } while try judgeQuota(reader)
    }
    if isAtomic, hasFailure {
      schema = schemaBefore
      failAll()
    }
  }

  private var hasFailure: Bool { steps.contains { $0.failure != nil } }

  private mutating func failAll() {
    for i in steps.indices where steps[i].failure == nil {
      steps[i].failure = CloudError(.atomicError, "Another operation of this atomic request failed")
    }
    cascade = []
  }

  /// One cell of the table in web-services section 5.
  private func judge(_ step: Step, _ schema: inout SchemaMemory, _ reader: any StorageReader) throws {
    if let failure = step.incoming.failure { throw failure }
    guard CloudServer.isValidName(step.name) else {
      throw CloudError(.badRequest, "'\(step.name)' is no valid record name")
    }
    step.before = try reader.record(zone.key, named: step.name)
    try judgeAccess(step, reader)
    try judgePresence(step)
    try judgePermission(step)
    try judgeLeaving(step)
    guard !step.kind.isDelete else { return }
    let record = step.incoming.operation.record
    step.type = try type(of: step)
    var fields = record.fields
    try schema.admit(&fields, of: step.type, untyped: step.incoming.untypedFields)
    try merge(&fields, step, schema.yielded)
    try admitAssets(&fields, step, reader)
    step.references = try references(fields, step)
    try judgeShare(step, reader)
    step.fields = fields
    let encoded = FieldBlob.encode(fields)
    guard encoded.count <= server.settings.bytesPerRecord else {
      throw CloudError(
        .badRequest, "The record has \(encoded.count) bytes, \(server.settings.bytesPerRecord) are allowed")
    }
    step.after = StoredRecord(
      name: step.name, position: 0, type: step.type, created: step.live?.created ?? now,
      createdBy: step.live?.createdBy ?? caller.key, modified: now, modifiedBy: caller.key, parent: step.parent,
      hasReferences: !step.references.isEmpty, hasAssets: !step.assets.isEmpty,
      isShared: step.live?.isShared == true || step.share != nil || step.wantsShortGUID, fields: encoded)
  }

  private func judgePresence(_ step: Step) throws {
    let tag = step.incoming.operation.record.changeTag
    guard let live = step.live else {
      switch step.kind {
      case .create, .forceUpdate, .forceReplace: return
      case .forceDelete: step.isNothing = true
      case .update, .replace, .delete:
        throw CloudError(
          .notFound, tag == nil ? "Record not found" : "recordChangeTag specified, but record not found")
      }
      return
    }
    switch step.kind {
    case .create: throw CloudError(.conflict, "record to insert already exists")
    case .forceUpdate, .forceReplace, .forceDelete: return
    case .delete where tag == nil: return
    case .update, .replace, .delete:
      guard tag == zone.epochs.tag(live.position) else {
        throw CloudError(.conflict, "client oplock error updating record")
      }
    }
  }

  /// In the public database a record belongs to who created it.
  private func judgePermission(_ step: Step) throws {
    guard caller.isInPublic, caller.role != .server, let live = step.live, live.createdBy != caller.key else { return }
    throw CloudError(.accessDenied, "Record '\(step.name)' belongs to another user")
  }

  private func type(of step: Step) throws -> String {
    var given = step.incoming.operation.record.type
    if given.isShareType { given = RecordSharing.shareType }
    if given.isEmpty {
      switch step.kind {
      case .create, .forceUpdate, .forceReplace:
        throw CloudError(.badRequest, "\(step.kind.rawValue) needs a recordType")
      default: break
      }
    }
    guard let live = step.live else { return given }
    guard given.isEmpty || given == live.type else {
      throw CloudError(.badRequest, "Record '\(step.name)' is of type '\(live.type)', which cannot become '\(given)'")
    }
    return live.type
  }

  /// Updates keep what the request leaves out; everything else starts from nothing. Nulls are not kept.
  private func merge(_ fields: inout Fields, _ step: Step, _ yielded: YieldedTypes) throws {
    step.parent = step.incoming.operation.record.parent
    switch step.kind {
    case .update, .forceUpdate:
      if let live = step.live {
        let removesParent = step.incoming.operation.record.sharing?.removesParent == true
        step.parent = step.parent ?? (removesParent ? nil : live.parent)
        var merged = try FieldBlob.decode(live.fields)
        merged.adapt(yielded[live.type])
        for field in fields { merged.set(field.name, field.value) }
        fields = merged
      }
    default: break
    }
    if fields.contains(where: { $0.value == nil }) {
      fields = Fields(uniqueFields: fields.storage.filter { $0.value != nil })
    }
  }

  /// The references that the server enforces, those of the fields and the parent.
  private func references(_ fields: Fields, _ step: Step) throws -> [StoredReference] {
    var found: [StoredReference] = []
    func add(_ value: FieldValue, _ field: String) throws {
      switch value {
      case .reference(let reference) where reference.action != .none:
        if let other = reference.zone, other.name != zone.name || !CloudServer.owns(caller, other) {
          throw CloudError(
            .badRequest, "Field '\(field)' refers to another zone, which only action NONE may do")
        }
        found.append(
          StoredReference(
            source: step.name, field: field, target: reference.recordName,
            kind: reference.action == .deleteSelf ? .deleteSelf : .validate))
      case .list(.reference, let elements): for element in elements { try add(element, field) }
      default: break
      }
    }
    for field in fields { if let value = field.value { try add(value, field.name) } }
    if let parent = step.parent {
      found.append(StoredReference(source: step.name, field: "parent", target: parent, kind: .parent))
    }
    return found
  }

  // MARK: Storing

  mutating func store(_ writer: any StorageWriter) throws {
    var last: Int64?
    try storeUsage(writer)
    for step in steps {
      if step.isSave, var after = step.after {
        after.position = try writer.takePosition(positions)
        last = after.position
        try writer.put(after, in: zone.key, replacing: step.before?.position)
        if after.hasReferences || step.before?.hasReferences == true {
          try writer.setReferences(zone.key, source: after.name, step.references)
        }
        if after.hasAssets || step.before?.hasAssets == true {
          try writer.setAssetUses(zone.key, source: after.name, step.assets)
        }
        step.after = after
      } else if step.isDelete, let live = step.live {
        last = try bury(live, time: step.incoming.operation.deleteTime, writer)
      }
    }
    lastOwnPosition = last
    for row in cascade { last = try bury(row, time: nil, writer) }
    if let last { try writer.setZonePosition(zone.key, last) }
    try storeShares(writer)
  }

  /// Replaces a live row by its tombstone.
  private func bury(_ row: StoredRecord, time: Int64?, _ writer: any StorageWriter) throws -> Int64 {
    var tombstone = row
    tombstone.position = try writer.takePosition(positions)
    tombstone.modified = time ?? now
    tombstone.modifiedBy = caller.key
    tombstone.died = now
    tombstone.parent = nil
    tombstone.hasReferences = false
    tombstone.hasAssets = false
    tombstone.isShared = false
    tombstone.fields = []
    try writer.put(tombstone, in: zone.key, replacing: row.position)
    if row.hasReferences { try writer.setReferences(zone.key, source: row.name, []) }
    if row.hasAssets { try writer.setAssetUses(zone.key, source: row.name, []) }
    return tombstone.position
  }

  // MARK: Answering

  func answer(
    _ outcomes: inout [OperationOutcome?], _ keys: [String]?, _ options: RequestOptions, _ types: YieldedTypes,
    _ reader: any StorageReader
  ) throws {
    let id = zone.id(for: caller)
    for step in steps {
      let recordID = RecordID(name: step.name, zone: id)
      if var failure = step.failure {
        if failure.code == .conflict, options.conflictRecords, let live = step.live {
          failure.serverRecord = try server.record(live, in: id, of: zone, keys: nil, types, caller, reader)
        }
        outcomes[step.index] = .failed(recordID, failure)
      } else if let after = step.after, var fields = step.fields {
        if let keys {
          fields = keys.isEmpty ? Fields() : Fields(uniqueFields: fields.storage.filter { keys.contains($0.name) })
        }
        outcomes[step.index] = .saved(try server.record(after, in: id, of: zone, fields: fields, caller, reader))
      } else {
        outcomes[step.index] = .deleted(recordID)
      }
    }
  }
}
