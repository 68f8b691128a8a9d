import CairnRecords
import Synchronization

/// Assets that live as long as this object, for tests.
public final class MemoryAssetStore: AssetStore {
  private let kept = Mutex<[[UInt8]: [UInt8]]>([:])

  public init() {}

  public func makeWriter() -> any AssetWriter { Writer(self) }

  public func open(_ digest: [UInt8]) -> AssetBytes? { kept.withLock { $0[digest] }.map { .memory($0) } }

  public func remove(_ digest: [UInt8], _ writer: (any StorageWriter)?) { kept.withLock { $0[digest] = nil } }

  public var parts: [Int] { [] }

  public func digests(in part: Int) -> [[UInt8]] { Array(kept.withLock { $0.keys }) }

  /// How many assets are kept.
  public var count: Int { kept.withLock { $0.count } }

  private final class Writer: AssetWriter {
    private struct State {
      var bytes: [UInt8] = []
      var digest: [UInt8] = []
    }

    private let store: MemoryAssetStore
    private let state = Mutex(State())

    init(_ store: MemoryAssetStore) { self.store = store }

    func append(_ bytes: UnsafeRawBufferPointer) { state.withLock { $0.bytes.append(contentsOf: bytes) } }

    func finish() -> AssetSummary {
      state.withLock { state in
        state.digest = SHA256.digest(state.bytes)
        return AssetSummary(digest: state.digest, size: Int64(state.bytes.count))
      }
    }

    func publish(_ writer: (any StorageWriter)?) {
      let (digest, bytes) = state.withLock { ($0.digest, $0.bytes) }
      store.kept.withLock { $0[digest] = bytes }
    }
  }
}
