import CairnRecords

/// A category some of whose values travel as assets (engine section 7, rule 7).
///
/// Going out, an asset that is not on the server stands in its operation as ``Asset/pending(hash:size:)``; the engine
/// uploads it before the record is sent and puts its receipt in. One without receipt, as the server named it before, is
/// sent as it is; if the server refuses it, it is uploaded too.
///
/// Coming in, the engine fetches what a record needs before it is handed over. What could not be had is the category's
/// to put aside.
public protocol AssetCategory: RecordCategory {
  /// The bytes of an asset of the batch that was taken last, or nil when the record has changed since: then it waits
  /// for a later batch. Never anything else than the bytes that the operation is about.
  func assetBytes(of record: String, field: String) throws -> [UInt8]?

  /// An asset of the batch that was taken last is on the server under this name.
  func noteUploaded(_ asset: Asset, of record: String, field: String)

  /// What has to be fetched before these records can be applied, each content once.
  func assetsNeeded(by records: [Record]) throws -> [NeededAsset]

  /// Takes fetched bytes, durably, until the records that need them are applied. False: they are not what was asked
  /// for.
  func hold(_ bytes: [UInt8], for asset: NeededAsset) throws -> Bool

  /// Names of records that were put aside for want of an asset and are due; with `all`, those that wait for a retry
  /// time too.
  func recordsWithoutAssets(in zone: ZoneID, all: Bool, now: Int64) throws -> [String]

  /// Present versions of such records, after what they need was fetched as far as it could be had.
  func refreshRecordsWithoutAssets(_ records: [Record], now: Int64) throws
}

/// An asset that a record needs.
public struct NeededAsset: Hashable, Sendable {
  /// What the category knows the content by.
  public var hash: String
  public var asset: Asset

  public init(hash: String, asset: Asset) {
    self.hash = hash
    self.asset = asset
  }
}

extension Asset {
  private static let pendingMark = "pending:"

  /// Stands for bytes that are still to be uploaded.
  public static func pending(hash: String, size: Int64) -> Asset {
    Asset(fileChecksum: pendingMark + hash, size: size)
  }

  /// What ``pending(hash:size:)`` was made with; nil for an asset of the server's.
  public var pendingHash: String? {
    fileChecksum.hasPrefix(Asset.pendingMark) ? String(fileChecksum.dropFirst(Asset.pendingMark.count)) : nil
  }
}
