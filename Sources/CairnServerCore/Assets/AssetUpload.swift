import CairnRecords
import Synchronization

/// The bytes of one upload as they come in. Used by one thread at a time; one that is not finished leaves nothing.
public final class AssetUpload: Sendable {
  private let server: CloudServer
  private let ticket: AssetTicket
  private let writer: any AssetWriter
  private let count = Mutex<Int64>(0)

  init(_ server: CloudServer, _ ticket: AssetTicket, _ writer: any AssetWriter) {
    self.server = server
    self.ticket = ticket
    self.writer = writer
  }

  /// Takes a part of the bytes.
  ///
  /// - Throws: `badRequest` beyond the limit of an asset, `tryAgainLater` when the disk is full.
  public func append(_ bytes: UnsafeRawBufferPointer) throws(CloudError) {
    let total = count.withLock { count in
      count += Int64(bytes.count)
      return count
    }
    guard total <= server.settings.bytesPerAsset else { throw server.assetTooLarge }
    do { try writer.append(bytes) } catch { throw CloudServer.cloudError(error) }
  }

  /// Ends the upload. `completion` gets the asset with its receipt once the bytes are durable, on the storage's thread
  /// or the caller's.
  public func finish(_ completion: @escaping @Sendable (Result<Asset, CloudError>) -> Void) {
    let summary: AssetSummary
    let expiry = server.clock.now + server.settings.receiptLife
    do { summary = try writer.finish() } catch { return completion(.failure(CloudServer.cloudError(error))) }
    server.storage.submit { [server, ticket, writer] storage in
      // Inside the job: what removes unused assets is a job too, so it comes before both or after both.
      try writer.publish(storage)
      try storage.keepAsset(summary, until: expiry)
      let asset = try server.receipt(summary, ticket, expiry: expiry, storage)
      return { completion(.success(asset)) }
    } failed: {
      completion(.failure(CloudServer.cloudError($0)))
    }
  }
}

extension CloudServer {
  /// Uploads bytes that are in memory to a target's path, for callers in this process. Blocks.
  public func upload(_ bytes: [UInt8], to path: String) throws(CloudError) -> Asset {
    let upload = try beginUpload(String(path.dropFirst(CloudServer.uploadPath.utf8.count)))
    try bytes.withUnsafeBufferPointer { (buffer) throws(CloudError) in
      try upload.append(UnsafeRawBufferPointer(buffer))
    }
    let outcome = Awaited<Result<Asset, CloudError>>()
    upload.finish { outcome.set($0) }
    return try outcome.wait().get()
  }
}
