import CSQLite
import CairnSQLite
import Foundation
import Synchronization

/// Ends a process at one of its commits: from that commit on, nothing is stored any more on the files of a folder.
///
/// A hook that SQLite runs before each COMMIT of every connection refuses it; what was committed before stays, as it
/// does after a kill.
enum CommitBorders {
  private struct State {
    /// By folder: how many commits still work.
    var left: [String: Int] = [:]
    var seen: [String: Int] = [:]
    var isInstalled = false
  }

  private static let state = Mutex(State())

  /// Runs `body`, which dies at the given commit, counted from 1, on any database of the folder.
  ///
  /// - Returns: how many commits it tried.
  static func dying<Failure>(
    at border: Int, in folder: URL, _ body: () throws(Failure) -> Void
  ) -> (commits: Int, failure: Failure?) {
    install()
    let key = folder.lastPathComponent
    state.withLock {
      $0.left[key] = border - 1
      $0.seen[key] = 0
    }
    var failure: Failure?
    do { try body() } catch { failure = error }
    return state.withLock {
      $0.left[key] = nil
      return ($0.seen[key] ?? 0, failure)
    }
  }

  private static func install() {
    let isFirst = state.withLock { state in
      let isFirst = !state.isInstalled
      state.isInstalled = true
      return isFirst
    }
    guard isFirst else { return }
    typealias Entry =
      @convention(c) (
        OpaquePointer?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, OpaquePointer?
      ) -> Int32
    let entry: Entry = { handle, _, _ in
      sqlite3_commit_hook(
        handle, { context in CommitBorders.mayCommit(context) ? 0 : 1 }, handle.map { UnsafeMutableRawPointer($0) })
      return SQLITE_OK
    }
    // SQLite's declaration leaves the parameters out, which it passes all the same.
    sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self))
  }

  private static func mayCommit(_ context: UnsafeMutableRawPointer?) -> Bool {
    guard let context, let name = sqlite3_db_filename(OpaquePointer(context), "main") else { return true }
    let key = URL(fileURLWithPath: String(cString: name)).deletingLastPathComponent().lastPathComponent
    return state.withLock { state in
      guard let left = state.left[key] else { return true }
      state.seen[key, default: 0] += 1
      state.left[key] = left - 1
      return left > 0
    }
  }
}
