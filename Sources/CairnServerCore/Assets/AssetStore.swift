/// Where the bytes of assets lie, by their SHA-256. The store of records says which of them are wanted.
///
/// ``AssetWriter/publish(_:)`` and ``remove(_:_:)`` are called inside write jobs of the ``Storage`` only, one after the
/// other, so that nothing is removed that is being published.
public protocol AssetStore: AnyObject, Sendable {
  /// Begins to take bytes, from any thread.
  func makeWriter() throws -> any AssetWriter

  /// The bytes, from any thread; nil where there are none.
  func open(_ digest: [UInt8]) throws -> AssetBytes?

  /// Removes bytes that no record wants, in the write job of `writer`, which matters where the bytes lie in the store
  /// of records. What is not there is no error.
  func remove(_ digest: [UInt8], _ writer: (any StorageWriter)?) throws

  /// The parts in which ``digests(in:)`` is asked for; none where nothing outlives the process.
  var parts: [Int] { get }

  /// Everything that is kept in one part, for the search for leftovers.
  func digests(in part: Int) throws -> [[UInt8]]
}

/// Takes the bytes of one asset. Used by one thread at a time; not published means gone with the object.
public protocol AssetWriter: AnyObject, Sendable {
  func append(_ bytes: UnsafeRawBufferPointer) throws
  /// Makes the bytes durable and says what they are.
  func finish() throws -> AssetSummary
  /// Puts the finished bytes in their place, durably, in the write job of `writer`, which matters where the bytes lie
  /// in the store of records. A job that is run again calls it again.
  func publish(_ writer: (any StorageWriter)?) throws
}

/// What names the bytes of an asset.
public struct AssetSummary: Hashable, Sendable {
  /// SHA-256, 32 bytes.
  public var digest: [UInt8]
  /// In bytes.
  public var size: Int64

  public init(digest: [UInt8], size: Int64) {
    self.digest = digest
    self.size = size
  }
}

/// The bytes of an asset.
public enum AssetBytes: Sendable {
  /// An open file, which whoever receives it closes.
  case file(descriptor: Int32, size: Int64)
  case memory([UInt8])
}
