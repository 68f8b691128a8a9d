import CairnServerCore

/// The tables of a store. docs/internals/postgres-storage.md explains them.
enum PostgresTables {
  /// What takes a store from each format to the next one. A statement ends with `;`, which occurs nowhere else.
  static let steps = [create, shares, visits]

  static var format: Int64 { Int64(steps.count) }

  /// A zone's key has its database's in the bits from here on.
  static let zoneBits: Int64 = 20

  private static let create = """
    CREATE TABLE users (
      key bigint PRIMARY KEY, name text NOT NULL UNIQUE, record_name text NOT NULL UNIQUE, created bigint NOT NULL,
      bytes bigint NOT NULL, quota bigint);
    CREATE TABLE access_tokens (hash bytea PRIMARY KEY, user_key bigint NOT NULL, created bigint NOT NULL);
    CREATE INDEX access_tokens_user ON access_tokens (user_key);
    CREATE TABLE app_credentials (
      number bigint PRIMARY KEY, kind text NOT NULL, id bytea NOT NULL UNIQUE, name text NOT NULL, container text,
      public_key bytea NOT NULL, switches text NOT NULL, origins text NOT NULL, created bigint NOT NULL,
      UNIQUE (kind, name));
    CREATE TABLE database_names (
      user_key bigint NOT NULL, container text NOT NULL, environment text NOT NULL, kind text NOT NULL,
      key bigint NOT NULL, incarnation bigint NOT NULL, PRIMARY KEY (user_key, container, environment, kind));
    CREATE TABLE databases (
      key bigint PRIMARY KEY, position bigint NOT NULL, epochs bytea NOT NULL, last_zone bigint NOT NULL);
    CREATE TABLE zones (
      database bigint NOT NULL, key bigint NOT NULL, name text NOT NULL, incarnation bigint NOT NULL,
      position bigint NOT NULL, deleted bigint NOT NULL, pruned bigint NOT NULL, bytes bigint NOT NULL,
      PRIMARY KEY (database, key), UNIQUE (database, name));
    CREATE TABLE records (
      database bigint NOT NULL, zone bigint NOT NULL, position bigint NOT NULL, name bytea NOT NULL,
      type bytea NOT NULL, created bigint NOT NULL, created_by bigint NOT NULL, modified bigint NOT NULL,
      modified_by bigint NOT NULL, died bigint, parent bytea, flags bigint NOT NULL, fields bytea NOT NULL,
      PRIMARY KEY (database, zone, position));
    CREATE UNIQUE INDEX records_name ON records (database, zone, name);
    CREATE INDEX records_died ON records (died) WHERE died IS NOT NULL;
    CREATE TABLE record_references (
      database bigint NOT NULL, zone bigint NOT NULL, target bytea NOT NULL, kind bigint NOT NULL,
      source bytea NOT NULL, field bytea NOT NULL, PRIMARY KEY (database, zone, target, kind, source, field));
    CREATE INDEX record_references_source ON record_references (database, zone, source);
    CREATE TABLE garbage (database bigint NOT NULL, zone bigint NOT NULL, PRIMARY KEY (database, zone));
    CREATE TABLE subscriptions (
      database bigint NOT NULL, id bytea NOT NULL, kind text NOT NULL, zone text, query bytea, events bigint NOT NULL,
      once bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (database, id));
    CREATE TABLE schema_versions (
      container text NOT NULL, environment text NOT NULL, version bigint NOT NULL,
      PRIMARY KEY (container, environment));
    CREATE TABLE schema_fields (
      container text NOT NULL, environment text NOT NULL, type bytea NOT NULL, field bytea NOT NULL,
      kind text NOT NULL, firm bigint NOT NULL, yielded bigint NOT NULL,
      PRIMARY KEY (container, environment, type, field));
    CREATE TABLE assets (
      digest bytea PRIMARY KEY, size bigint NOT NULL, keep_until bigint NOT NULL, suspect bigint NOT NULL,
      upload bytea);
    CREATE INDEX assets_suspect ON assets (keep_until) WHERE suspect = 1;
    CREATE TABLE asset_uses (
      database bigint NOT NULL, zone bigint NOT NULL, source bytea NOT NULL, digest bytea NOT NULL,
      PRIMARY KEY (database, zone, source, digest));
    CREATE INDEX asset_uses_digest ON asset_uses (digest);
    CREATE TABLE asset_chunks (
      upload bytea NOT NULL, number bigint NOT NULL, added timestamptz NOT NULL DEFAULT now(), bytes bytea NOT NULL,
      PRIMARY KEY (upload, number));
    CREATE TABLE couriers (
      token text PRIMARY KEY, user_key bigint NOT NULL, client text, apps text NOT NULL, used bigint NOT NULL);
    CREATE TABLE news (
      id bigint PRIMARY KEY, sender bigint NOT NULL, added timestamptz NOT NULL DEFAULT now(), message bytea NOT NULL);
    """

  /// What format 2 added.
  private static let shares = """
    ALTER TABLE users ADD COLUMN email bytea;
    ALTER TABLE users ADD COLUMN given_name bytea;
    ALTER TABLE users ADD COLUMN family_name bytea;
    ALTER TABLE users ADD COLUMN discoverable bigint NOT NULL DEFAULT 1;
    CREATE UNIQUE INDEX users_email ON users (email);
    CREATE TABLE shares (
      key bigint PRIMARY KEY, zone bigint NOT NULL, root bytea NOT NULL, name bytea, guid bytea NOT NULL UNIQUE,
      permission text NOT NULL, position bigint NOT NULL, pruned bigint NOT NULL, UNIQUE (zone, root));
    CREATE INDEX shares_name ON shares (zone, name);
    CREATE TABLE share_participants (
      share bigint NOT NULL, number bigint NOT NULL, user_key bigint, lookup_kind text NOT NULL, lookup bytea NOT NULL,
      type text NOT NULL, permission text NOT NULL, accepted bigint NOT NULL, PRIMARY KEY (share, number));
    CREATE INDEX share_participants_user ON share_participants (user_key);
    CREATE TABLE share_entries (
      database bigint NOT NULL, share bigint NOT NULL, position bigint NOT NULL, zone bigint NOT NULL,
      name bytea NOT NULL, type bytea NOT NULL, left_at bigint, PRIMARY KEY (database, share, position));
    CREATE UNIQUE INDEX share_entries_name ON share_entries (database, zone, name, share);
    CREATE INDEX share_entries_left ON share_entries (left_at) WHERE left_at IS NOT NULL;
    """

  /// What format 3 added.
  private static let visits = """
    CREATE TABLE devices (
      user_key bigint NOT NULL, name text NOT NULL, container text NOT NULL, first_seen bigint NOT NULL,
      last_seen bigint NOT NULL, PRIMARY KEY (user_key, name));
    CREATE TABLE usage_days (
      user_key bigint NOT NULL, day bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (user_key, day));
    """

  /// Makes the tables of an empty store and those that an older one lacks. Refuses a store of a newer format.
  static func prepare(_ connection: PostgresConnection) throws {
    for attempt in 1... {
      do {
        return try prepareOnce(connection)
      } catch let error as PostgresError where isRace(error) && attempt < 10 {
        // Another process has made the same tables at the same time: the next look finds them.
        connection.rollBack()
      }
    }
  }

  /// Whether a store is there, of whatever format.
  static func exist(_ connection: PostgresConnection) throws -> Bool {
    try connection.query(
      "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'cairn' AND table_name = 'store'"
    ).integer(0, 0) > 0
  }

  private static func isRace(_ error: PostgresError) -> Bool {
    error.isConflict || ["42P06", "42P07", "42710"].contains(error.state)
  }

  private static func prepareOnce(_ connection: PostgresConnection) throws {
    // Found is the usual case, which needs no right to make a schema.
    let known = try connection.query("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'cairn'")
    if known.integer(0, 0) == 0 { try connection.script("CREATE SCHEMA IF NOT EXISTS cairn") }
    try connection.send("BEGIN")
    if known.integer(0, 0) == 0 {
      try connection.query(
        """
        CREATE TABLE IF NOT EXISTS store (
          id bigint PRIMARY KEY, format bigint NOT NULL, epoch bigint NOT NULL, last_key bigint NOT NULL,
          last_credential bigint NOT NULL, secret bytea)
        """)
      try connection.query("INSERT INTO store VALUES (1, 0, 0, 0, 0, NULL) ON CONFLICT (id) DO NOTHING")
    }
    let found = try connection.query("SELECT format FROM store WHERE id = 1 FOR UPDATE")
    guard !found.isEmpty else { throw StorageFailure("The store has no row 'store': it is damaged") }
    let format = found.integer(0, 0)
    guard format <= self.format else {
      connection.rollBack()
      throw StorageFailure("The data was written by a newer version of Cairn (format \(format)): update cairn")
    }
    for step in steps[Int(format)...] { try connection.script(step) }
    try connection.query("UPDATE store SET format = $1 WHERE id = 1", [.int(self.format)])
    try connection.query("COMMIT")
  }
}
