import CairnSQLite

/// Takes Cairn out of a file (tables L7).
public enum Deinstallation {
  /// Drops capture and metadata in one transaction; the user's tables and rows are not touched.
  ///
  /// - Returns: how many changes were never sent, those of users whose state the file keeps included.
  public static func run(path: String) throws(TablesError) -> Int {
    let connection = try DatabaseOpener.open(path, mode: .readWrite)
    do {
      guard try MetadataSchema.isInstalled(in: connection) else { throw TablesError.notPrepared(path) }
      let pending = try connection.scalar(
        "SELECT (SELECT count(*) FROM cairn_record WHERE pending > 0) + (SELECT count(*) FROM cairn_log)")
      let filed = try FiledIdentities(connection).entries().reduce(0) { $0 + $1.pending }
      try connection.transaction { try CaptureInstaller(connection: connection).uninstall() }
      return Int(pending?.integer ?? 0) + filed
    } catch let error as TablesError {
      throw error
    } catch let error as SQLiteError {
      throw DatabaseOpener.explain(error, path)
    } catch {
      throw .damagedMetadata("\(error)")
    }
  }
}
