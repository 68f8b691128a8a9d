import CairnRecords

/// Uploads the assets of a request before its records (engine section 7, rule 7).
extension SyncSession {
  /// A modify request, with its uploads. A record whose asset can't be had or is refused fails alone; a receipt that
  /// the server does not take is replaced once.
  func modify(_ zone: ZoneID, _ operations: [RecordOperation], _ atomic: Bool) throws -> EngineAnswer {
    guard operations.contains(where: \.hasOutgoingAssets) else {
      let report = try cloud.modifyReportingPosition(in: zone, operations, atomic: atomic)
      return .outcomes(report.outcomes, report.position)
    }
    var sending = AssetSending(operations)
    try upload(&sending, Array(operations.indices), zone, again: false)
    var position = try send(&sending, Array(operations.indices), zone, atomic)
    let refused = sending.refusedForAssets
    if !refused.isEmpty {
      let indices = atomic ? Array(operations.indices) : refused
      try upload(&sending, refused, zone, again: true)
      let next = try send(&sending, indices, zone, atomic)
      if let first = position, let second = next, first.after == second.before {
        position = FeedStep(before: first.before, after: second.after)
      } else {
        position = nil
      }
    }
    return .outcomes(sending.outcomes, position)
  }

  /// Puts uploaded assets in place of pending ones; with `again`, uploads all of them, whatever was known before.
  private func upload(_ sending: inout AssetSending, _ indices: [Int], _ zone: ZoneID, again: Bool) throws {
    var places: [AssetSending.Place] = []
    for place in sending.places(indices) where again || place.isPending {
      if !again, let known = receipts[zone, place.target, place.hash] {
        sending.put(known, at: place)
      } else {
        places.append(place)
      }
    }
    guard !places.isEmpty else { return }
    var unread: [Int: CloudError] = [:]
    let results = try cloud.uploadAssets(in: zone, places.map(\.target)) { (index) throws(CloudError) in
      if wasCancelled { throw CloudError(.cancelled, "Cancelled") }
      do {
        let place = places[index]
        if let bytes = try retrying({
          try assetCategory(of: place.target, zone)?.assetBytes(of: place.target.record, field: place.target.field)
        }) {
          return bytes
        }
        unread[index] = CloudError(.cancelled, "The record has changed meanwhile")
      } catch {
        unread[index] = CloudError(.cancelled, "An asset can't be read now: \(error)")
      }
      throw CloudError(.notFound, "There is nothing to send")
    }
    for (index, place) in places.enumerated() {
      let result = index < results.count ? results[index] : .failure(CloudError(.undecodableAnswer, "no answer"))
      switch result {
      case .success(let asset):
        receipts[zone, place.target, place.hash] = asset
        assetCategory(of: place.target, zone)?
          .noteUploaded(asset, of: place.target.record, field: place.target.field)
        sending.put(asset, at: place)
      case .failure(let error): sending.fail(place.index, unread[index] ?? AssetSending.failure(error))
      }
    }
  }

  /// Sends what has all its assets.
  private func send(
    _ sending: inout AssetSending, _ indices: [Int], _ zone: ZoneID, _ atomic: Bool
  ) throws -> FeedStep? {
    let ready = indices.filter { sending.failures[$0] == nil }
    if atomic, ready.count < indices.count {
      for index in ready {
        sending.outcomes[index] = .failed(
          sending.operations[index].record.id,
          CloudError(.atomicError, "Another operation of this atomic request has no asset"))
      }
      return nil
    }
    guard !ready.isEmpty else { return nil }
    let report = try cloud.modifyReportingPosition(
      in: zone, ready.map { sending.operations[$0] }, atomic: atomic)
    for (index, outcome) in zip(ready, report.outcomes) {
      sending.outcomes[index] = outcome
      guard case .saved = outcome else { continue }
      for place in sending.places([index]) { receipts[zone, place.target, place.hash] = nil }
    }
    return report.outcomes.count == ready.count ? report.position : nil
  }

  func assetCategory(of target: AssetTarget, _ zone: ZoneID) -> (any AssetCategory)? {
    categories.first { $0.claims(type: target.type, name: target.record, in: zone) } as? any AssetCategory
  }
}

extension RecordOperation {
  fileprivate var hasOutgoingAssets: Bool {
    !kind.isDelete && record.fields.contains { if case .asset? = $0.value { true } else { false } }
  }
}

/// The operations of one request on their way, with what becomes of each.
private struct AssetSending {
  struct Place {
    var index: Int
    var target: AssetTarget
    /// Of the content, as the category or the server named it at first.
    var hash: String
    var isPending: Bool
  }

  private let original: [RecordOperation]
  private(set) var operations: [RecordOperation]
  private(set) var failures: [Int: CloudError] = [:]
  var outcomes: [OperationOutcome]

  init(_ operations: [RecordOperation]) {
    original = operations
    self.operations = operations
    outcomes = operations.map {
      .failed($0.record.id, CloudError(.undecodableAnswer, "the answer has fewer entries than the request"))
    }
    for index in operations.indices where operations[index].hasOutgoingAssets {
      // Where the bytes could once be read is of no interest to the server.
      for field in operations[index].record.fields.storage {
        guard case .asset(var asset)? = field.value, asset.downloadURL != nil else { continue }
        asset.downloadURL = nil
        self.operations[index].record.fields.set(field.name, .asset(asset))
      }
    }
  }

  func places(_ indices: [Int]) -> [Place] {
    indices.flatMap { index -> [Place] in
      let record = original[index].record
      guard original[index].hasOutgoingAssets else { return [] }
      return record.fields.compactMap { field in
        guard case .asset(let asset)? = field.value else { return nil }
        return Place(
          index: index, target: AssetTarget(record: record.id.name, type: record.type, field: field.name),
          hash: asset.pendingHash ?? asset.fileChecksum, isPending: asset.pendingHash != nil)
      }
    }
  }

  mutating func put(_ asset: Asset, at place: Place) {
    operations[place.index].record.fields.set(place.target.field, .asset(asset))
  }

  mutating func fail(_ index: Int, _ error: CloudError) {
    failures[index] = failures[index] ?? error
    outcomes[index] = .failed(original[index].record.id, failures[index] ?? error)
  }

  /// Operations with assets that the server has refused as malformed: their receipts may be to blame.
  var refusedForAssets: [Int] {
    outcomes.indices.filter { index in
      guard failures[index] == nil, original[index].hasOutgoingAssets, case .failed(_, let error) = outcomes[index]
      else { return false }
      return error.code == .badRequest
    }
  }

  /// The failure of a record whose asset was refused: the server's limit of an asset is a BAD_REQUEST (web-services
  /// section 12).
  static func failure(_ error: CloudError) -> CloudError {
    var error = error
    if error.code == .badRequest { error.code = .limitExceeded }
    if error.code == .notFound || error.code == .zoneNotFound { error.code = .cancelled }
    return error
  }
}
