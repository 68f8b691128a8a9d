import CairnRecords
import CairnServerCore
import Foundation

/// Bytes of assets in the store itself, in pieces, so that every server reaches them.
///
/// An upload's pieces lie under a random name, written as they come in; with the job that keeps the asset they become
/// its bytes. An asset and its bytes go in one transaction. What an upload that broke off has left goes after a day.
public final class PostgresAssetStore: AssetStore {
  fileprivate static let piece = 256 << 10
  /// Larger assets are handed out through a file that has no name.
  private static let mostInMemory: Int64 = 1 << 20

  fileprivate let readers: PostgresReaders

  public init(_ storage: PostgresStorage) {
    readers = storage.readers
    storage.submit(
      { writer in
        try (writer as? PostgresSession)?.changeLater(
          """
          DELETE FROM asset_chunks WHERE added < now() - interval '1 day'
          AND NOT EXISTS (SELECT 1 FROM assets WHERE assets.upload = asset_chunks.upload)
          """)
        return {}
      },
      failed: { _ in
        // Leftovers cost room only; the next start tries again.
      })
  }

  public func makeWriter() -> any AssetWriter { Writer(self) }

  /// Removed with its row, by ``StorageWriter/forgetAsset(_:)``.
  public func remove(_ digest: [UInt8], _ writer: (any StorageWriter)?) {}

  public var parts: [Int] { [] }
  public func digests(in part: Int) -> [[UInt8]] { [] }

  public func open(_ digest: [UInt8]) throws -> AssetBytes? {
    try readers.withConnection { connection in
      let rows = try connection.query("SELECT size, upload FROM assets WHERE digest = $1", [.bytes(digest)])
      guard !rows.isEmpty, let upload = rows.optionalBytes(0, 1) else { return nil }
      let size = rows.integer(0, 0)
      if size <= Self.mostInMemory {
        var bytes: [UInt8] = []
        try PostgresAssetStore.pieces(of: upload, size, connection) { bytes += $0 }
        return .memory(bytes)
      }
      let file = try PostgresAssetStore.namelessFile()
      do {
        try PostgresAssetStore.pieces(of: upload, size, connection) { try PostgresAssetStore.write($0, to: file) }
      } catch {
        close(file)
        throw error
      }
      guard lseek(file, 0, SEEK_SET) == 0 else {
        close(file)
        throw StorageFailure("A file for an asset can't be read")
      }
      return .file(descriptor: file, size: size)
    }
  }

  private static func pieces(
    of upload: [UInt8], _ size: Int64, _ connection: PostgresConnection, _ body: ([UInt8]) throws -> Void
  ) throws {
    var number: Int64 = 0
    var left = size
    while left > 0 {
      let rows = try connection.query(
        "SELECT bytes FROM asset_chunks WHERE upload = $1 AND number = $2", [.bytes(upload), .int(number)])
      // Removed while it was read, because no record has it any more.
      guard !rows.isEmpty else {
        throw CloudError(.notFound, "The asset is not there any more: look the record up again")
      }
      let bytes = rows.bytes(0, 0)
      try body(bytes)
      left -= Int64(bytes.count)
      number += 1
    }
  }

  private static func namelessFile() throws -> Int32 {
    var path = Array((NSTemporaryDirectory() + "cairn-asset-XXXXXX").utf8CString)
    let file = mkstemp(&path)
    guard file >= 0 else { throw StorageFailure("A file for an asset can't be made in the temporary folder") }
    unlink(path)
    _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    return file
  }

  private static func write(_ bytes: [UInt8], to file: Int32) throws {
    var at = 0
    while at < bytes.count {
      let count = bytes.withUnsafeBytes { Foundation.write(file, $0.baseAddress.map { $0 + at }, bytes.count - at) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        throw CloudError(
          .tryAgainLater, "The server's temporary folder is full: its operator has to make room", retryAfter: 5)
      }
      at += count
    }
  }

  // Used by one thread at a time: the connection's while bytes come in, then the storage's.
  private final class Writer: AssetWriter, @unchecked Sendable {
    private let store: PostgresAssetStore
    private let upload = (0..<16).map { _ in UInt8.random(in: 0...255) }
    private var pending: [UInt8] = []
    private var count: Int64 = 0
    private var size: Int64 = 0
    private var hash = SHA256()
    private var summary = AssetSummary(digest: [], size: 0)
    private var isPublished = false

    init(_ store: PostgresAssetStore) { self.store = store }

    func append(_ bytes: UnsafeRawBufferPointer) throws {
      hash.update(bytes)
      size += Int64(bytes.count)
      pending.append(contentsOf: bytes)
      while pending.count >= PostgresAssetStore.piece { try send() }
    }

    private func send() throws {
      let piece = Array(pending.prefix(PostgresAssetStore.piece))
      try store.readers.withConnection { connection in
        // A second attempt may find that the first has worked.
        _ = try connection.query(
          """
          INSERT INTO asset_chunks (upload, number, bytes) VALUES ($1, $2, $3) ON CONFLICT (upload, number) DO NOTHING
          """, [.bytes(upload), .int(count), .bytes(piece)])
      }
      pending.removeFirst(piece.count)
      count += 1
    }

    func finish() throws -> AssetSummary {
      if !pending.isEmpty { try send() }
      summary = AssetSummary(digest: hash.finish(), size: size)
      return summary
    }

    func publish(_ writer: (any StorageWriter)?) throws {
      guard let session = writer as? PostgresSession else {
        throw StorageFailure("Assets that lie in PostgreSQL need a store in PostgreSQL")
      }
      try session.setUpload(upload, of: summary)
      isPublished = true
    }

    deinit {
      guard count > 0, !isPublished else { return }
      // Where the server is away, the pieces go after a day.
      _ = try? store.readers.withConnection { connection in
        try connection.query("DELETE FROM asset_chunks WHERE upload = $1", [.bytes(upload)])
      }
    }
  }
}
