import CairnRecords

/// A field for which a client wants to upload an asset. An empty record name asks the server for one.
public struct AssetField: Hashable, Sendable {
  public var recordName: String
  public var recordType: String
  public var fieldName: String

  public init(recordName: String, recordType: String, fieldName: String) {
    self.recordName = recordName
    self.recordType = recordType
    self.fieldName = fieldName
  }
}

/// Where the bytes of one field may be sent.
public struct AssetUploadTarget: Hashable, Sendable {
  public var recordName: String
  public var fieldName: String
  /// Of the address, from `/`; its last part is the proof that the upload is allowed.
  public var path: String
}

/// Web-services section 11, assets.
extension CloudServer {
  /// What the paths of uploads and downloads begin with.
  public static let uploadPath = "/asset-upload/"
  public static let downloadPath = "/asset/"

  var assetTooLarge: CloudError {
    CloudError(.badRequest, "An asset may have \(settings.bytesPerAsset) bytes, this one has more")
  }

  static let badReceipt = CloudError(.badRequest, "bad upload receipt (did_not_validate)")

  // MARK: Requests

  /// One target per field, in order (assets/upload).
  ///
  /// - Throws: in the shared database `zoneNotFound` for a zone that is not shared with the caller, `accessDenied` for
  ///   one in which the caller may change nothing. Without a zone the save is judged.
  public func uploadTargets(
    _ caller: Caller, _ scope: DatabaseScope, in id: ZoneID? = nil, _ fields: [AssetField],
    _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [AssetUploadTarget] {
    try checkCount(fields.count, options)
    let (database, caller) = try open(caller, scope, toWrite: true)
    // In the shared database each owner has a quota: the save is judged.
    if scope.kind != .shared { try refuseUploads(of: caller) }
    if scope.kind == .shared, let id {
      let zone = try read { [caller] in try self.zone(id, caller, database, $0) }
      guard zone.view?.parts.contains(where: { $0.permission == .readWrite }) == true else {
        throw CloudError(.accessDenied, "Nothing in zone '\(id.name)' may be changed")
      }
    }
    let secret = try newAssetSecret()
    var targets: [AssetUploadTarget] = []
    for field in fields {
      guard !field.recordType.isEmpty, !field.fieldName.isEmpty else {
        throw CloudError(.badRequest, "An upload token needs recordType and fieldName")
      }
      let name = field.recordName.isEmpty ? randomness.recordName() : field.recordName
      var ticket = AssetTicket(
        .upload, owner: database.incarnation, expiry: clock.now + settings.uploadLife)
      ticket.binding = AssetTicket.binding(type: field.recordType, name: name, field: field.fieldName)
      targets.append(
        AssetUploadTarget(
          recordName: name, fieldName: field.fieldName, path: CloudServer.uploadPath + ticket.text(secret)))
    }
    return targets
  }

  /// Begins an upload at the last part of a target's path.
  ///
  /// - Throws: `accessDenied` for a token that was not given out here or has expired.
  public func beginUpload(_ token: String) throws(CloudError) -> AssetUpload {
    guard let secret = try assetSecret(), let ticket = AssetTicket(token, [.upload], secret, now: clock.now) else {
      throw CloudError(.accessDenied, "The upload address is not valid or has expired: ask assets/upload for another")
    }
    do { return AssetUpload(self, ticket, try assets.makeWriter()) } catch { throw CloudServer.cloudError(error) }
  }

  /// The bytes that a download address stands for.
  ///
  /// - Throws: `accessDenied` for an address that was not given out here or has expired, `notFound` when no record of
  ///   the user refers to the asset any more.
  public func download(_ token: String) throws(CloudError) -> AssetBytes {
    guard let secret = try assetSecret(), let ticket = AssetTicket(token, [.download], secret, now: clock.now) else {
      throw CloudError(.accessDenied, "The download address is not valid or has expired: look the record up again")
    }
    let isInUse = try read { try $0.isAssetInUse(ticket.digest, user: ticket.owner) }
    do {
      if isInUse, let bytes = try assets.open(ticket.digest) { return bytes }
    } catch { throw CloudServer.cloudError(error) }
    throw CloudError(.notFound, "The asset is not there any more: look the record up again")
  }

  /// Assets of fields of records, with receipts that are good for any field of the database (assets/rereference).
  public func rereference(
    _ caller: Caller, _ scope: DatabaseScope, in id: ZoneID, _ fields: [AssetField],
    _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    try checkCount(fields.count, options)
    let (database, caller) = try open(caller, scope, toWrite: true)
    _ = try newAssetSecret()
    let expiry = clock.now + settings.receiptLife
    return try write(in: database.key) { [self] writer in
      let zone = try zone(id, caller, database, writer)
      return try fields.map { field in
        guard let row = try writer.record(zone.key, named: field.recordName), row.isLive,
          try zone.shows(row.name, writer), case .asset(let asset)? = try FieldBlob.decode(row.fields)[field.fieldName],
          let digest = asset.digest,
          try writer.asset(digest) != nil
        else { return .failure(CloudError(.notFound, "There is no asset in that field")) }
        let summary = AssetSummary(digest: digest, size: asset.size)
        try writer.keepAsset(summary, until: expiry)
        let ticket = AssetTicket(.copy, owner: database.incarnation, expiry: expiry)
        return .success(try receipt(summary, ticket, expiry: expiry, writer))
      }
    }
  }

  // MARK: Receipts and addresses

  /// The asset with a receipt as `ticket` allows it.
  func receipt(
    _ summary: AssetSummary, _ ticket: AssetTicket, expiry: Int64, _ reader: any StorageReader
  ) throws -> Asset {
    guard let secret = try reader.assetSecret() else { throw StorageFailure("The store has lost its secret") }
    var receipt = AssetTicket(ticket.kind == .copy ? .copy : .receipt, owner: ticket.owner, expiry: expiry)
    receipt.binding = ticket.binding
    receipt.digest = summary.digest
    receipt.size = summary.size
    var asset = Asset(summary)
    asset.referenceChecksum = asset.fileChecksum
    // Apple's clients want a key; bytes here are not wrapped.
    asset.wrappingKey = Base64.encode(Array(SHA256.digest(summary.digest)[..<16]))
    asset.receipt = receipt.text(secret)
    return asset
  }

  /// Gives the assets among `fields` an address each. Equal for a quarter of an hour, so that answers can be compared
  /// and kept.
  func addAddresses(to fields: inout Fields, _ caller: Caller, _ reader: any StorageReader) throws {
    guard let secret = try assetSecret(reader) else { return }
    let step: Int64 = 900_000
    let expiry = ((clock.now + settings.downloadLife) / step + 1) * step
    for field in fields.storage {
      guard let value = field.value, value.holdsAssets else { continue }
      fields.set(
        field.name,
        value.mapAssets { asset in
          guard let digest = asset.digest else { return asset }
          var ticket = AssetTicket(.download, owner: caller.storageOwner, expiry: expiry)
          ticket.digest = digest
          ticket.size = asset.size
          var asset = asset
          asset.downloadURL = CloudServer.downloadPath + ticket.text(secret)
          return asset
        })
    }
  }

  // MARK: The secret

  /// What signs tickets; nil in a store that never had an asset.
  func assetSecret(_ reader: any StorageReader) throws -> [UInt8]? {
    if let known = memory.withLock({ $0.assetSecret }) { return known }
    guard let secret = try reader.assetSecret() else { return nil }
    memory.withLock { $0.assetSecret = secret }
    return secret
  }

  private func assetSecret() throws(CloudError) -> [UInt8]? { try read { try assetSecret($0) } }

  /// Made with the first upload, and kept in the store: tickets outlive a restart.
  private func newAssetSecret() throws(CloudError) -> [UInt8] {
    if let known = try assetSecret() { return known }
    return try write { [self] writer in
      if let known = try writer.assetSecret() { return known }
      let secret = (0..<4).flatMap { _ in withUnsafeBytes(of: randomness.next()) { Array($0) } }
      try writer.setAssetSecret(secret)
      return secret
    }
  }

  // MARK: Garbage

  /// Forgets the assets that no record has and no receipt can bring back, inside a write job.
  ///
  /// Their bytes go in a later job, ``removeBytes(of:)``: the jobs of one commit may be undone together, and with this
  /// one the deletion by which an asset had become unused.
  ///
  /// - Returns: what was forgotten.
  func forgetUnusedAssets(_ now: Int64, _ writer: any StorageWriter) throws -> [[UInt8]] {
    let unused = try writer.unusedAssets(before: now, limit: 500)
    for digest in unused { try writer.forgetAsset(digest) }
    return unused
  }

  /// Removes bytes of which the store knew nothing at an earlier commit, unless it knows of them again, inside a write
  /// job. What has come back meanwhile is kept for a receipt's life, so no job of the same commit forgets it.
  private func removeBytes(of digests: [[UInt8]], _ writer: any StorageWriter) throws {
    for digest in digests where try writer.asset(digest) == nil { try assets.remove(digest, writer) }
  }

  /// Queues the removal of bytes; `next` follows it.
  func removeBytes(of digests: [[UInt8]], then next: @escaping @Sendable () -> Void = {}) {
    guard !digests.isEmpty else { return next() }
    storage.submit { [weak self] writer in
      try self?.removeBytes(of: digests, writer)
      return next
    } failed: { _ in
      // Leftovers cost room only; the next start finds them.
    }
  }

  /// Does now what otherwise happens with a write once in a while.
  public func removeUnusedAssets() throws(CloudError) {
    let now = clock.now
    let gone = try write { [self] in try forgetUnusedAssets(now, $0) }
    try write { [self] in try removeBytes(of: gone, $0) }
  }

  /// Removes what a crash has left, part by part, without waiting for the end.
  func removeAssetLeftovers(_ parts: ArraySlice<Int>) {
    guard let part = parts.first else { return }
    storage.submit { [weak self] writer in
      guard let self else { return {} }
      let unknown = try assets.digests(in: part).filter { try writer.asset($0) == nil }
      return { [weak self] in
        self?.removeBytes(of: unknown) { [weak self] in self?.removeAssetLeftovers(parts.dropFirst()) }
      }
    } failed: { _ in
      // Leftovers cost room only; the next start tries again.
    }
  }
}
