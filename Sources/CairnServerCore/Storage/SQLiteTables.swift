import CairnSQLite

/// The tables of `cairn.db`. docs/internals/server-storage.md explains them.
enum SQLiteTables {
  /// Kept in `PRAGMA user_version`.
  static let format: Int64 = 7

  static let create = """
    CREATE TABLE store (position INTEGER NOT NULL);
    INSERT INTO store VALUES (0);
    CREATE TABLE epoch (number INTEGER PRIMARY KEY, name INTEGER NOT NULL, start INTEGER NOT NULL);
    CREATE TABLE user (
      key INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, record_name TEXT NOT NULL UNIQUE,
      created INTEGER NOT NULL);
    CREATE TABLE access_token (hash BLOB PRIMARY KEY, user INTEGER NOT NULL, created INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX access_token_user ON access_token (user);
    CREATE TABLE database (
      key INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER NOT NULL, container TEXT NOT NULL,
      environment TEXT NOT NULL, kind TEXT NOT NULL, incarnation INTEGER NOT NULL,
      UNIQUE (user, container, environment, kind));
    CREATE TABLE zone (
      key INTEGER PRIMARY KEY AUTOINCREMENT, database INTEGER NOT NULL, name TEXT NOT NULL,
      incarnation INTEGER NOT NULL, position INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
      pruned INTEGER NOT NULL DEFAULT 0, UNIQUE (database, name));
    CREATE INDEX zone_feed ON zone (database, position);
    CREATE TABLE garbage (zone INTEGER PRIMARY KEY);
    CREATE TABLE record (
      zone INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
      created INTEGER NOT NULL, created_by INTEGER NOT NULL, modified INTEGER NOT NULL, modified_by INTEGER NOT NULL,
      died INTEGER, parent TEXT, has_references INTEGER NOT NULL, fields BLOB NOT NULL,
      PRIMARY KEY (zone, position)) WITHOUT ROWID;
    CREATE UNIQUE INDEX record_name ON record (zone, name);
    CREATE INDEX record_died ON record (died) WHERE died IS NOT NULL;
    CREATE TABLE reference (
      zone INTEGER NOT NULL, target TEXT NOT NULL, kind INTEGER NOT NULL, source TEXT NOT NULL, field TEXT NOT NULL,
      PRIMARY KEY (zone, target, kind, source, field)) WITHOUT ROWID;
    CREATE INDEX reference_source ON reference (zone, source);
    CREATE TABLE schema_field (
      container TEXT NOT NULL, environment TEXT NOT NULL, type TEXT NOT NULL, field TEXT NOT NULL, kind TEXT NOT NULL,
      firm INTEGER NOT NULL, yielded INTEGER NOT NULL, PRIMARY KEY (container, environment, type, field)) WITHOUT ROWID;
    """

  /// What format 2 added.
  static let assets = """
    CREATE TABLE secret (value BLOB NOT NULL);
    CREATE TABLE asset (
      digest BLOB PRIMARY KEY, size INTEGER NOT NULL, keep_until INTEGER NOT NULL, suspect INTEGER NOT NULL)
      WITHOUT ROWID;
    CREATE INDEX asset_suspect ON asset (keep_until) WHERE suspect = 1;
    CREATE TABLE asset_use (
      zone INTEGER NOT NULL, source TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (zone, source, digest))
      WITHOUT ROWID;
    CREATE INDEX asset_use_digest ON asset_use (digest);
    """

  /// What format 3 added.
  static let subscriptions = """
    CREATE TABLE subscription (
      database INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, zone TEXT, query BLOB, events INTEGER NOT NULL,
      once INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (database, id)) WITHOUT ROWID;
    """

  /// What format 4 added. What is stored already is counted once, as every write counts it from then on.
  static let access = """
    ALTER TABLE user ADD COLUMN quota INTEGER;
    ALTER TABLE user ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zone ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE app_credential (
      number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id BLOB NOT NULL UNIQUE, name TEXT NOT NULL,
      container TEXT, public_key BLOB NOT NULL, switches TEXT NOT NULL, origins TEXT NOT NULL,
      created INTEGER NOT NULL, UNIQUE (kind, name));
    UPDATE zone SET bytes =
      (SELECT ifnull(sum(length(fields) + \(StoredRecord.bytesBesideFields)), 0) FROM record
       WHERE record.zone = zone.key AND died IS NULL)
      + (SELECT ifnull(sum(asset.size), 0) FROM asset_use JOIN asset USING (digest) WHERE asset_use.zone = zone.key)
      WHERE deleted = 0;
    UPDATE user SET bytes =
      (SELECT ifnull(sum(zone.bytes), 0) FROM zone JOIN database ON database.key = zone.database
       WHERE database.user = user.key);
    """

  /// What format 5 added.
  static let databaseEpochs = """
    CREATE TABLE database_epoch (
      number INTEGER PRIMARY KEY, database INTEGER NOT NULL, name INTEGER NOT NULL, start INTEGER NOT NULL);
    CREATE INDEX database_epoch_database ON database_epoch (database);
    """

  /// What format 6 added.
  static let shares = """
    ALTER TABLE user ADD COLUMN email TEXT;
    ALTER TABLE user ADD COLUMN given_name TEXT;
    ALTER TABLE user ADD COLUMN family_name TEXT;
    ALTER TABLE user ADD COLUMN discoverable INTEGER NOT NULL DEFAULT 1;
    CREATE UNIQUE INDEX user_email ON user (email) WHERE email IS NOT NULL;
    CREATE TABLE share (
      key INTEGER PRIMARY KEY AUTOINCREMENT, zone INTEGER NOT NULL, root TEXT NOT NULL, name TEXT,
      guid TEXT NOT NULL UNIQUE, permission TEXT NOT NULL, position INTEGER NOT NULL, pruned INTEGER NOT NULL,
      UNIQUE (zone, root));
    CREATE INDEX share_name ON share (zone, name);
    CREATE TABLE share_participant (
      share INTEGER NOT NULL, number INTEGER NOT NULL, user INTEGER, lookup_kind TEXT NOT NULL, lookup TEXT NOT NULL,
      type TEXT NOT NULL, permission TEXT NOT NULL, accepted INTEGER NOT NULL, PRIMARY KEY (share, number))
      WITHOUT ROWID;
    CREATE INDEX share_participant_user ON share_participant (user);
    CREATE TABLE share_entry (
      share INTEGER NOT NULL, position INTEGER NOT NULL, zone INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
      left_at INTEGER, PRIMARY KEY (share, position)) WITHOUT ROWID;
    CREATE UNIQUE INDEX share_entry_name ON share_entry (zone, name, share);
    CREATE INDEX share_entry_left ON share_entry (left_at) WHERE left_at IS NOT NULL;
    """

  /// What format 7 added.
  static let visits = """
    CREATE TABLE device (
      user INTEGER NOT NULL, name TEXT NOT NULL, container TEXT NOT NULL, first_seen INTEGER NOT NULL,
      last_seen INTEGER NOT NULL, PRIMARY KEY (user, name)) WITHOUT ROWID;
    CREATE TABLE usage_day (
      user INTEGER NOT NULL, day INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (user, day)) WITHOUT ROWID;
    """

  /// What takes a store from each format to the next one.
  private static let steps = [create, assets, subscriptions, access, databaseEpochs, shares, visits]

  /// Creates the tables of an empty store and those that an older one lacks. Refuses a store of a newer format.
  ///
  /// - Parameter last: the format at which to stop; tests make older stores.
  static func prepare(_ connection: Connection, upTo last: Int64 = format) throws {
    // Two processes may open a new store at once: the second finds the tables.
    try connection.transaction {
      let found = try connection.scalar("PRAGMA user_version")?.asInteger ?? 0
      guard found <= format else {
        throw StorageFailure("The data was written by a newer version of Cairn (format \(found)): update cairn")
      }
      guard found < last else { return }
      if found == 0, try connection.scalar("SELECT count(*) FROM sqlite_schema")?.asInteger != 0 {
        throw StorageFailure("The database belongs to another program: give Cairn a folder of its own")
      }
      for step in steps[Int(found)..<Int(last)] { try connection.execute(step) }
      try connection.execute("PRAGMA user_version = \(last)")
    }
  }
}
