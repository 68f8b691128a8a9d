import CairnServerCore
import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Copies of a data folder. A copy is a data folder itself: `cairn.db` and `assets`.
public enum StoreBackup {
  public struct Summary: Hashable, Sendable {
    /// Of the database.
    public var bytes: Int64
    public var assets: Int
    /// Assets that were not there from an earlier copy.
    public var copiedAssets: Int
  }

  /// Copies the data of a server, which may run meanwhile, into a folder. An earlier copy that is there becomes the new
  /// one, and keeps the assets that it has; until then it stays whole. Anything else that is there is refused: data
  /// that the copy does not hold, and a folder on which a server runs or another copy is being made.
  ///
  /// The database is one snapshot. An asset of it may be removed by the server before it has been copied: then a newer
  /// snapshot is taken, which does not want it.
  public static func make(data: String, to folder: String) throws(ServerStartError) -> Summary {
    let source = data + "/cairn.db"
    guard DataDirectory.exists(data) else {
      throw ServerStartError("\(data) holds no data of a server", remedy: "give the folder of cairn serve with --data")
    }
    try DataDirectory(data).checkNotEmptied()
    guard !contains(data, folder) else {
      throw ServerStartError("a copy can't be made in the folder itself", remedy: "give another folder with --to")
    }
    let target = try DataDirectory(folder, option: "--to")
    let lock = try target.lock()
    defer { close(lock) }
    try checkGivesWay(target, to: source)
    let incoming = folder + "/cairn.db.incoming"
    // What a full disk has left.
    defer { for ending in ["", "-wal", "-shm", "-journal"] { unlink(incoming + ending) } }
    for _ in 0..<5 {
      try copyDatabase(source, to: incoming, "the data in \(source) can't be copied")
      let wanted = try attempt("the copy can't be read") { try SQLiteStorage.assets(in: incoming) }
      guard let copied = try copyAssets(wanted, from: data, to: folder) else { continue }
      try attempt("the copy can't be put in place") {
        try mark(target)
        try StoreFiles.settleLogs(target.databasePath)
        try StoreFiles.publish(incoming, target.databasePath)
        try removeOthers(than: wanted, in: folder)
      }
      return Summary(bytes: size(target.databasePath), assets: wanted.count, copiedAssets: copied)
    }
    throw ServerStartError("assets went while they were copied", remedy: "run the command again")
  }

  /// Puts a copy in place of the data of a server that does not run. Whenever it is interrupted, the folder holds what
  /// it held or all of the copy; one that held nothing is refused by servers.
  ///
  /// - Parameter replacing: whether data that is there gives way. Its database stays beside, as `cairn.db.replaced`.
  public static func restore(
    from folder: String, data: String, replacing: Bool
  ) throws(ServerStartError) -> Summary {
    let source = folder + "/cairn.db"
    guard size(source) > 0 else {
      throw ServerStartError("\(folder) holds no copy", remedy: "give a folder of cairn server backup with --from")
    }
    guard !contains(data, folder) else {
      throw ServerStartError("a copy can't be restored to its own folder", remedy: "give another folder with --data")
    }
    let target = try DataDirectory(data)
    let lock = try target.lock()
    defer { close(lock) }
    let isThere = FileManager.default.fileExists(atPath: target.databasePath)
    guard replacing || !isThere else {
      throw ServerStartError("\(data) holds data already", remedy: "give an empty folder, or --replace")
    }
    let incoming = data + "/cairn.db.incoming"
    defer { for ending in ["", "-wal", "-shm", "-journal"] { unlink(incoming + ending) } }
    try copyDatabase(source, to: incoming, "the copy can't be read")
    if let damage = try attempt("the copy can't be checked", { try SQLiteStorage.damage(in: incoming) }) {
      throw ServerStartError("the copy is damaged (\(damage))", remedy: "restore another one")
    }
    if let format = try attempt("the copy can't be read", { try SQLiteStorage.newerFormat(of: incoming) }) {
      throw ServerStartError(
        "the copy was written by a newer version of Cairn (format \(format))", remedy: "update cairn")
    }
    let wanted = try attempt("the copy can't be read") { try SQLiteStorage.assets(in: incoming) }
    guard let copied = try copyAssets(wanted, from: folder, to: data) else {
      throw ServerStartError("the copy lacks assets", remedy: "restore another one")
    }
    try attempt("the data can't be replaced") {
      try StoreFiles.setAside(target.databasePath)
      try StoreFiles.publish(incoming, target.databasePath)
      unlink(target.copyMark)
    }
    return Summary(bytes: size(target.databasePath), assets: wanted.count, copiedAssets: copied)
  }

  // MARK: What may give way

  /// Only an earlier copy of the same data gives way to a copy: never what a server has used, be it that folders were
  /// swapped, nor the last copy of another server or of what a restore has undone.
  private static func checkGivesWay(_ target: DataDirectory, to source: String) throws(ServerStartError) {
    guard DataDirectory.exists(target.path) else { return }
    guard access(target.copyMark, F_OK) == 0 else {
      throw ServerStartError(
        "\(target.path) holds a server's data and not just a copy",
        remedy: "give another folder with --to, and see that it is not the one that --data should name")
    }
    let isEarlier = try attempt("the earlier copy in \(target.path) can't be read") {
      try SQLiteStorage.isEarlierCopy(target.databasePath, of: source)
    }
    guard isEarlier else {
      throw ServerStartError(
        "\(target.path) holds a copy of other data, or of what a restore has undone",
        remedy: "give another folder with --to, or remove that copy")
    }
  }

  /// Whether a folder is another one, or lies in it, whatever the paths are called.
  private static func contains(_ outer: String, _ inner: String) -> Bool {
    func place(_ path: String) -> [String] {
      URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().pathComponents
    }
    return place(inner).starts(with: place(outer))
  }

  private static func mark(_ target: DataDirectory) throws {
    let text = "A copy that cairn server backup made and may replace. A server that starts here removes this file.\n"
    let descriptor = open(target.copyMark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreFiles.failure(target.copyMark) }
    defer { close(descriptor) }
    guard write(descriptor, text, text.utf8.count) == text.utf8.count else { throw StoreFiles.failure(target.copyMark) }
  }

  // MARK: Files

  private static func copyDatabase(
    _ source: String, to target: String, _ sentence: String
  ) throws(ServerStartError) {
    unlink(target)
    try attempt(sentence) {
      // SQLite would give the file the rights that the umask leaves.
      let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw StoreFiles.failure(target) }
      close(descriptor)
      try SQLiteStorage.copy(source, to: target)
    }
  }

  /// Nil when one is missing.
  private static func copyAssets(
    _ wanted: [AssetSummary], from source: String, to target: String
  ) throws(ServerStartError) -> Int? {
    var copied = 0
    for asset in wanted {
      let name = FileAssetStore.name(asset.digest)
      let place = target + "/assets/" + name
      if FileManager.default.fileExists(atPath: place), size(place) == asset.size { continue }
      let from = source + "/assets/" + name
      guard FileManager.default.fileExists(atPath: from) else { return nil }
      let isThere: Bool = try attempt("an asset can't be copied") {
        try FileManager.default.createDirectory(
          atPath: (place as NSString).deletingLastPathComponent, withIntermediateDirectories: true,
          attributes: [.posixPermissions: 0o700])
        unlink(place + ".incoming")
        do { try FileManager.default.copyItem(atPath: from, toPath: place + ".incoming") } catch {
          if !FileManager.default.fileExists(atPath: from) { return false }
          throw error
        }
        guard rename(place + ".incoming", place) == 0 else { throw StoreFiles.failure(place) }
        return true
      }
      guard isThere else { return nil }
      copied += 1
    }
    return copied
  }

  /// Removes assets that an earlier copy wanted.
  private static func removeOthers(than wanted: [AssetSummary], in folder: String) throws {
    let names = Set(wanted.map { FileAssetStore.name($0.digest) })
    guard let found = FileManager.default.enumerator(atPath: folder + "/assets") else { return }
    for case let name as String in found where name.count > 64 && !names.contains(name) {
      unlink(folder + "/assets/" + name)
    }
  }

  private static func size(_ path: String) -> Int64 { Int64(ProcessUsage.size(of: path)) }

  @discardableResult
  private static func attempt<Result>(
    _ sentence: String, _ body: () throws -> Result
  ) throws(ServerStartError) -> Result {
    do { return try body() } catch let error as ServerStartError { throw error } catch {
      throw ServerStartError(
        "\(sentence) (\(SQLiteStorage.reason(error)))", remedy: "check the disk and the folders' permissions")
    }
  }
}
