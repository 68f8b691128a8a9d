import CairnServerCore
import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Puts the file of a store in place of another one, so that at every moment there is one of them, whole.
///
/// SQLite takes a log that lies beside a file for that file's, whichever file it was written for. So no file gets the
/// name of another one before that one's log is gone.
enum StoreFiles {
  private static let logs = ["-wal", "-shm", "-journal"]

  /// Brings what the logs of a store hold into its file, as its next start would. Logs without a file go aside.
  static func settleLogs(_ path: String) throws {
    if FileManager.default.fileExists(atPath: path) {
      guard try SQLiteStorage.settle(path) else { throw StorageFailure("\(path) is damaged") }
    } else {
      try moveLogs(of: path)
    }
    try checkHasNoLogs(path)
  }

  private static func checkHasNoLogs(_ path: String) throws {
    for ending in logs where size(path + ending) > 0 {
      throw StorageFailure("\(path + ending) is in use: another program has the file open")
    }
  }

  /// Keeps a store that is going to be replaced under another name, beside its own. A damaged one is kept as it is.
  static func setAside(_ path: String) throws {
    let kept = path + ".replaced"
    if FileManager.default.fileExists(atPath: path) {
      for ending in [""] + logs { unlink(kept + ending) }
      if try !SQLiteStorage.settle(path) { try moveLogs(of: path) }
      try checkHasNoLogs(path)
      if link(path, kept) != 0 { try FileManager.default.copyItem(atPath: path, toPath: kept) }
    } else {
      try moveLogs(of: path)
    }
  }

  private static func moveLogs(of path: String) throws {
    for ending in logs {
      guard rename(path + ending, path + ".replaced" + ending) == 0 || errno == ENOENT else {
        throw failure(path + ending)
      }
    }
  }

  /// Gives a whole file, whose assets are in place, the name of the store.
  static func publish(_ incoming: String, _ path: String) throws {
    for ending in logs { unlink(incoming + ending) }
    try makeDurable(incoming)
    // The assets and their folders, before the file that wants them: one call for all of them.
    sync()
    guard rename(incoming, path) == 0 else { throw failure(path) }
    try makeDurable((path as NSString).deletingLastPathComponent)
  }

  private static func makeDurable(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure(path) }
  }

  private static func size(_ path: String) -> Int64 {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : 0
  }

  static func failure(_ path: String) -> any Error {
    StorageFailure("\(path): \(String(cString: strerror(errno)))")
  }
}
