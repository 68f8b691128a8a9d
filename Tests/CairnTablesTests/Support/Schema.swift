/// Schemas of the scenarios.
enum Schema {
  /// The part of schema S that most merges need: less to set up.
  static let lists = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title, color);
    CREATE TABLE items(id TEXT PRIMARY KEY NOT NULL, list_id TEXT NOT NULL REFERENCES lists ON DELETE CASCADE, title,
      done, due);
    CREATE TABLE covers(list_id TEXT PRIMARY KEY NOT NULL REFERENCES lists ON DELETE CASCADE, image BLOB);
    CREATE TABLE tags(name TEXT PRIMARY KEY NOT NULL COLLATE NOCASE);
    CREATE TABLE slots(id TEXT PRIMARY KEY NOT NULL, pos UNIQUE, label);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title, body);
    """

  /// Schema S of tables.md section 8.
  static let scenarios = """
    CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, title, color);
    CREATE TABLE items(id TEXT PRIMARY KEY NOT NULL, list_id TEXT NOT NULL REFERENCES lists ON DELETE CASCADE, title,
      done, due);
    CREATE TABLE covers(list_id TEXT PRIMARY KEY NOT NULL REFERENCES lists ON DELETE CASCADE, image BLOB);
    CREATE TABLE tags(name TEXT PRIMARY KEY NOT NULL COLLATE NOCASE);
    CREATE TABLE item_tags(item_id TEXT NOT NULL REFERENCES items ON DELETE CASCADE,
      tag TEXT NOT NULL REFERENCES tags ON DELETE CASCADE ON UPDATE CASCADE, PRIMARY KEY (item_id, tag));
    CREATE TABLE opt(id TEXT PRIMARY KEY NOT NULL, list_id TEXT REFERENCES lists ON DELETE SET NULL);
    CREATE TABLE dflt(id TEXT PRIMARY KEY NOT NULL, list_id TEXT DEFAULT 'inbox' REFERENCES lists ON DELETE SET DEFAULT);
    CREATE TABLE kept(id TEXT PRIMARY KEY NOT NULL, list_id TEXT REFERENCES lists ON DELETE RESTRICT);
    CREATE TABLE slots(id TEXT PRIMARY KEY NOT NULL, pos UNIQUE, label);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title, body);
    CREATE TABLE files(id INTEGER PRIMARY KEY, note_id INTEGER REFERENCES notes ON DELETE SET NULL ON UPDATE CASCADE,
      name);
    CREATE TABLE labels(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE marks(note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
      label_id INTEGER NOT NULL REFERENCES labels ON DELETE CASCADE, PRIMARY KEY (note_id, label_id));
    CREATE TABLE employees(id INTEGER PRIMARY KEY, name, boss_id INTEGER REFERENCES employees ON DELETE RESTRICT);
    """
}
