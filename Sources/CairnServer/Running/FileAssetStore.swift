import CCrypto
import CairnRecords
import CairnServerCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Assets as files in a folder, named by their SHA-256: `3f/3fa9…`. What is being received lies in `incoming`.
///
/// One running server owns the folder. A file gets its name only when it is whole and durable, so what has a name is
/// whole after any crash.
public final class FileAssetStore: AssetStore {
  private let folder: String
  private let counter = Atomic<UInt64>(0)

  /// Opens the folder, creating it where it is missing, and removes what a crash left half received.
  public init(folder: String) throws {
    self.folder = folder
    for path in [folder, folder + "/incoming"] where mkdir(path, 0o700) != 0 && errno != EEXIST {
      throw FileAssetStore.failure("can't be created", path)
    }
    for name in try FileAssetStore.names(in: folder + "/incoming") { unlink("\(folder)/incoming/\(name)") }
  }

  public func makeWriter() throws -> any AssetWriter {
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    return try FileAssetWriter(self, path: "\(folder)/incoming/\(number)")
  }

  public func open(_ digest: [UInt8]) throws -> AssetBytes? {
    let path = path(digest)
    let descriptor = openForReading(path)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw FileAssetStore.failure("can't be read", path)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      defer { close(descriptor) }
      throw FileAssetStore.failure("can't be read", path)
    }
    return .file(descriptor: descriptor, size: Int64(status.st_size))
  }

  public func remove(_ digest: [UInt8], _ writer: (any StorageWriter)?) throws {
    let path = path(digest)
    guard unlink(path) == 0 || errno == ENOENT else { throw FileAssetStore.failure("can't be removed", path) }
  }

  public var parts: [Int] { Array(0..<256) }

  public func digests(in part: Int) throws -> [[UInt8]] {
    let path = "\(folder)/\(Hexadecimal.text([UInt8(part)]))"
    guard access(path, F_OK) == 0 else { return [] }
    return try FileAssetStore.names(in: path).compactMap { Hexadecimal.bytes($0) }.filter { $0.count == 32 }
  }

  // MARK: Names

  /// The path of an asset below the folder.
  static func name(_ digest: [UInt8]) -> String {
    let name = Hexadecimal.text(digest)
    return "\(name.prefix(2))/\(name)"
  }

  private func path(_ digest: [UInt8]) -> String {
    "\(folder)/\(FileAssetStore.name(digest))"
  }

  fileprivate func publish(_ incoming: String, _ digest: [UInt8]) throws {
    let target = path(digest)
    let parent = "\(folder)/\(Hexadecimal.text([digest[0]]))"
    if mkdir(parent, 0o700) == 0 {
      try FileAssetStore.syncFolder(folder)
    } else if errno != EEXIST {
      throw FileAssetStore.failure("can't be created", parent)
    }
    guard rename(incoming, target) == 0 else { throw FileAssetStore.failure("can't be put in place", target) }
    try FileAssetStore.syncFolder(parent)
  }

  private static func syncFolder(_ path: String) throws {
    let descriptor = openForReading(path)
    guard descriptor >= 0 else { throw failure("can't be opened", path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("can't be made durable", path) }
  }

  private static func names(in path: String) throws -> [String] {
    guard let folder = opendir(path) else { throw failure("can't be read", path) }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// The error that `errno` tells.
  fileprivate static func failure(_ what: String, _ path: String) -> any Error {
    if errno == ENOSPC || errno == EDQUOT {
      return CloudError(
        .tryAgainLater, "The server's disk is full: its operator has to make room", retryAfter: 5)
    }
    return StorageFailure("\(path) \(what) (\(String(cString: strerror(errno))))")
  }
}

/// `open` for reading; the classes here have a method of that name.
private func openForReading(_ path: String) -> Int32 { open(path, O_RDONLY | O_CLOEXEC) }

/// One asset on its way into a file. The file goes with the object, unless it was published.
private final class FileAssetWriter: AssetWriter, @unchecked Sendable {
  // Used by one thread at a time: the connection's while bytes come in, then the storage's.
  private let store: FileAssetStore
  private let path: String
  private var descriptor: Int32
  private let hash: OpaquePointer?
  private var size: Int64 = 0
  private var digest: [UInt8] = []
  private var isPublished = false

  init(_ store: FileAssetStore, path: String) throws {
    self.store = store
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    hash = EVP_MD_CTX_new()
    EVP_DigestInit_ex(hash, EVP_sha256(), nil)
    guard descriptor >= 0 else { throw FileAssetStore.failure("can't be created", path) }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    EVP_MD_CTX_free(hash)
    if !isPublished { unlink(path) }
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws {
    var at = 0
    while at < bytes.count {
      let count = write(descriptor, bytes.baseAddress.map { $0 + at }, bytes.count - at)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileAssetStore.failure("can't be written", path) }
      at += count
    }
    EVP_DigestUpdate(hash, bytes.baseAddress, bytes.count)
    size += Int64(bytes.count)
  }

  func finish() throws -> AssetSummary {
    guard fsync(descriptor) == 0 else { throw FileAssetStore.failure("can't be made durable", path) }
    close(descriptor)
    descriptor = -1
    digest = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      EVP_DigestFinal_ex(hash, buffer.baseAddress, nil)
      count = 32
    }
    return AssetSummary(digest: digest, size: size)
  }

  func publish(_ writer: (any StorageWriter)?) throws {
    if isPublished { return }
    try store.publish(path, digest)
    isPublished = true
  }
}
