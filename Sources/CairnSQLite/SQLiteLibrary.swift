import CSQLite

/// Settings of the SQLite library in this process.
public enum SQLiteLibrary {
  /// Stops SQLite from counting the memory that it has allocated, which takes a mutex at every allocation.
  ///
  /// For programs that use SQLite only through Cairn, before their first connection; later it does nothing. Never for
  /// an app's library: the setting holds for the whole process.
  public static func stopCountingMemory() { _ = cairn_sqlite3_config_memory_status(0) }
}
