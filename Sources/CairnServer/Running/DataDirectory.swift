import CairnServerCore
import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The folder of a server's data: `cairn.db`, `assets`, and a lock that one running server holds.
public struct DataDirectory: Sendable {
  public let path: String
  /// The option that named the folder, for remedies.
  private let option: String

  /// Opens the folder, creating it where it is missing.
  ///
  /// - Parameter option: the option of the command line that named it, for remedies.
  public init(_ path: String, option: String = "--data") throws(ServerStartError) {
    self.path = path
    self.option = option
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw ServerStartError("\(path) is a file, not a folder", remedy: "give another folder with \(option)")
      }
    } else {
      do {
        try FileManager.default.createDirectory(
          atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw ServerStartError(
          "the folder \(path) can't be created",
          remedy: "check its parent folder's permissions, or give another with \(option)")
      }
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw ServerStartError(
        "the folder \(path) can't be written to (\(String(cString: strerror(errno))))",
        remedy: "give this user the right to, or give another folder with \(option)")
    }
  }

  /// Opens a folder that has to hold a server's data: a mistyped name is no empty server.
  public static func existing(_ path: String, option: String = "--data") throws(ServerStartError) -> DataDirectory {
    guard exists(path) else {
      throw ServerStartError(
        "there is no server's data in \(path)", remedy: "give the folder of cairn serve with \(option)")
    }
    return try DataDirectory(path, option: option)
  }

  public var databasePath: String { path + "/cairn.db" }
  /// Where a database lies that is not whole yet.
  public var incomingPath: String { path + "/cairn.db.incoming" }

  /// Says that the folder is a copy of `cairn server backup`, which the next copy may replace; a server that starts on
  /// the folder takes it away.
  var copyMark: String { path + "/cairn.copy" }

  /// Opens the store.
  public func openStorage() throws(ServerStartError) -> SQLiteStorage {
    try checkNotEmptied()
    if !DataDirectory.exists(path), access(incomingPath, F_OK) == 0 {
      throw ServerStartError(
        "the data in \(path) is not whole: putting a copy there was interrupted",
        remedy: "run the cairn server command that did it again, or remove \(incomingPath) to begin with nothing")
    }
    return try openStorage(at: databasePath)
  }

  /// Opens an empty store that is to be filled, and that servers refuse until ``publishIncoming()``.
  public func openIncomingStorage() throws(ServerStartError) -> SQLiteStorage {
    for ending in ["", "-wal", "-shm", "-journal"] { unlink(incomingPath + ending) }
    return try openStorage(at: incomingPath)
  }

  /// Makes the store that was filled, and closed, the folder's.
  public func publishIncoming() throws(ServerStartError) {
    do {
      try StoreFiles.settleLogs(incomingPath)
      try StoreFiles.settleLogs(databasePath)
      try StoreFiles.publish(incomingPath, databasePath)
    } catch {
      throw ServerStartError(
        "the data can't be put in place (\(error))", remedy: "check the disk and the folder's permissions")
    }
  }

  private func openStorage(at databasePath: String) throws(ServerStartError) -> SQLiteStorage {
    // SQLite would give the file the rights that the umask leaves; the log and its index take those of the file.
    let descriptor = open(databasePath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw ServerStartError(
        "\(databasePath) can't be opened for writing (\(String(cString: strerror(errno))))",
        remedy: "run the command as the user whose file it is, or give this user the right to write to it")
    }
    close(descriptor)
    do { return try SQLiteStorage(path: databasePath) } catch let error as StorageFailure {
      // These reasons say themselves what to do.
      throw ServerStartError("the data in \(databasePath) can't be used", remedy: error.reason)
    } catch {
      throw ServerStartError(
        "the data in \(databasePath) can't be opened (\(SQLiteStorage.reason(error)))",
        remedy: "check the disk, or restore a backup with cairn server restore")
    }
  }

  /// Opens the folder of assets, for the one server that holds the lock.
  public func openAssets() throws(ServerStartError) -> FileAssetStore {
    do { return try FileAssetStore(folder: path + "/assets") } catch {
      throw ServerStartError(
        "the assets in \(path)/assets can't be opened (\(error))", remedy: "check the folder's permissions and the disk"
      )
    }
  }

  /// Refuses a database that has lost all that it held: SQLite takes an empty file for a new one. The first start makes
  /// the file before the folder of assets, so what is empty beside one was cut off.
  func checkNotEmptied() throws(ServerStartError) {
    guard access(databasePath, F_OK) == 0, ProcessUsage.size(of: databasePath) == 0,
      ["/cairn.db-wal", "/assets", "/cairn.copy"].contains(where: { access(path + $0, F_OK) == 0 })
    else { return }
    throw ServerStartError(
      "\(databasePath) is empty: what it held is lost",
      remedy: "restore a backup with cairn server restore --replace, or remove the file to begin without data")
  }

  /// Whether there is a server's data in a folder.
  public static func exists(_ path: String) -> Bool { access(path + "/cairn.db", F_OK) == 0 }

  /// A lock that was taken.
  public struct Lock: Sendable {
    fileprivate let descriptor: Int32
    /// Call once.
    public func release() { close(descriptor) }
  }

  /// Keeps servers from starting on the folder.
  public func takeLock() throws(ServerStartError) -> Lock { Lock(descriptor: try lock()) }

  /// Takes the lock of a running server. It goes with the process, however that ends.
  func lock() throws(ServerStartError) -> Int32 {
    let file = path + "/cairn.lock"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw ServerStartError(
        "\(file) can't be opened (\(String(cString: strerror(errno))))", remedy: "check its permissions")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw ServerStartError(
        "another server runs on \(path), or a command works on it",
        remedy: "stop it first, or give another folder with \(option)")
    }
    return descriptor
  }
}
