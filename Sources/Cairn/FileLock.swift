import Foundation

#if canImport(Glibc)
  @preconcurrency import Glibc
#endif

/// Keeps a second engine from syncing the same file (tables L14).
///
/// The lock lies on a file of its own beside the database, `NAME-cairn-lock`: closing any descriptor of the database
/// itself would drop SQLite's locks. It belongs to the operating system, so it dies with its process.
public final class FileLock {
  /// Another process holds the lock.
  public struct Held: Error, Hashable, Sendable, CustomStringConvertible {
    public var path: String
    /// The process that holds it, where it said so.
    public var process: Int32?

    public var description: String {
      let name = (path as NSString).lastPathComponent
      let who = process.map { "process \($0)" } ?? "another process"
      return "\(name) is being synced by \(who): stop it, or let it do the work"
    }
  }

  /// The file that the lock lies on can't be made.
  public struct Unavailable: Error, Hashable, Sendable, CustomStringConvertible {
    public var path: String
    /// What the system says.
    public var reason: String

    public var description: String {
      "\(path) can't be made (\(reason)): make the folder of the database writable, or move the database to one that is"
    }
  }

  private let descriptor: Int32
  private let lockPath: String

  /// Takes the lock of the database at `path`.
  ///
  /// - Throws: ``Held``, or ``Unavailable`` where the folder can't be written to.
  public init(database path: String) throws {
    lockPath = Self.lockPath(path)
    while true {
      let file = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      guard file >= 0 else { throw Unavailable(path: lockPath, reason: String(cString: strerror(errno))) }
      guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
        let holder = Self.readProcess(file)
        close(file)
        throw Held(path: path, process: holder)
      }
      // Its last holder may have removed the file between our opening and locking it.
      if Self.isSameFile(file, lockPath) {
        descriptor = file
        break
      }
      close(file)
    }
    let text = "\(getpid())\n"
    _ = ftruncate(descriptor, 0)
    _ = text.withCString { pwrite(descriptor, $0, strlen($0), 0) }
  }

  deinit {
    unlink(lockPath)
    close(descriptor)
  }

  /// Runs `body` while the lock is held.
  public static func whileHeld<Result>(database path: String, _ body: () throws -> Result) throws -> Result {
    let lock = try FileLock(database: path)
    return try withExtendedLifetime(lock) { try body() }
  }

  private static func lockPath(_ path: String) -> String {
    URL(fileURLWithPath: path).resolvingSymlinksInPath().path + "-cairn-lock"
  }

  private static func isSameFile(_ file: Int32, _ path: String) -> Bool {
    var open = stat()
    var named = stat()
    guard fstat(file, &open) == 0, stat(path, &named) == 0 else { return false }
    return open.st_ino == named.st_ino && open.st_dev == named.st_dev
  }

  private static func readProcess(_ file: Int32) -> Int32? {
    var buffer = [UInt8](repeating: 0, count: 16)
    let count = pread(file, &buffer, buffer.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: buffer[..<count], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
  }
}
