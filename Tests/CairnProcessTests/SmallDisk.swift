import Foundation
import ProcessSupport

/// A file system of a few megabytes in memory, to fill; unmounted when this object goes.
final class SmallDisk {
  let path: String
  private let folder: TemporaryFolder

  /// Why there can be none here; nil where there can.
  static let obstacle: String? = {
    #if os(Linux)
      do {
        _ = try SmallDisk(megabytes: 1)
        return nil
      } catch {
        return "a small disk needs the right to mount: \(error)"
      }
    #else
      return "needs Linux"
    #endif
  }()

  init(megabytes: Int) throws {
    folder = try TemporaryFolder()
    path = folder.path
    try Self.run("mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path)
  }

  deinit {
    // Nothing depends on it: the test has ended, and the system forgets the mount at the next start.
    try? Self.run("umount", "-l", path)
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func resize(megabytes: Int) throws { try Self.run("mount", "-o", "remount,size=\(megabytes)m", path) }

  func setReadOnly(_ isReadOnly: Bool) throws {
    try Self.run("mount", "-o", "remount,\(isReadOnly ? "ro" : "rw")", path)
  }

  /// Writes a file until nothing fits any more.
  func fill() throws { try Self.run("sh", "-c", "dd if=/dev/zero of=\(path)/fill bs=4096 2> /dev/null; true") }

  func free() throws { try FileManager.default.removeItem(atPath: file("fill")) }

  private static func run(_ words: String...) throws {
    let result = try RunningProcess("/usr/bin/env", words).waitUntilExit()
    guard result.status == 0 else { throw CocoaError(.fileWriteNoPermission, userInfo: ["error": result.error]) }
  }
}
