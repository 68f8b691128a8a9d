import CairnSQLite

/// The demonstration's database: a small music shop with INTEGER keys that each device gives out by itself.
enum DemoShop {
  static let schema = """
    CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE album (
      id INTEGER PRIMARY KEY, title TEXT NOT NULL,
      artist_id INTEGER NOT NULL REFERENCES artist(id) ON DELETE CASCADE);
    CREATE TABLE track (
      id INTEGER PRIMARY KEY, album_id INTEGER NOT NULL REFERENCES album(id) ON DELETE CASCADE,
      position INTEGER NOT NULL, name TEXT NOT NULL, seconds INTEGER NOT NULL, price REAL NOT NULL,
      UNIQUE (album_id, position));
    CREATE TABLE customer (
      id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, phone TEXT, email TEXT NOT NULL);
    CREATE TABLE invoice (
      id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(id), day TEXT NOT NULL);
    CREATE TABLE invoice_line (
      id INTEGER PRIMARY KEY, invoice_id INTEGER NOT NULL REFERENCES invoice(id) ON DELETE CASCADE,
      track_id INTEGER NOT NULL REFERENCES track(id), price REAL NOT NULL, quantity INTEGER NOT NULL DEFAULT 1);
    CREATE TABLE playlist (name TEXT PRIMARY KEY NOT NULL, note TEXT);
    CREATE TABLE playlist_track (
      playlist TEXT NOT NULL REFERENCES playlist(name) ON DELETE CASCADE,
      track_id INTEGER NOT NULL REFERENCES track(id) ON DELETE CASCADE,
      PRIMARY KEY (playlist, track_id)) WITHOUT ROWID;
    CREATE TABLE voucher (code TEXT PRIMARY KEY NOT NULL, percent INTEGER NOT NULL, note TEXT);
    """

  static let tables = [
    "artist", "album", "track", "customer", "invoice", "invoice_line", "playlist", "playlist_track", "voucher",
  ]

  /// What a table holds, in words that mean the same on every device: names instead of local integers, in a fixed
  /// order.
  static let contents: [String: String] = [
    "artist": "SELECT name FROM artist ORDER BY 1",
    "album": "SELECT title, a.name FROM album LEFT JOIN artist a ON a.id = artist_id ORDER BY 1, 2",
    "track": """
    SELECT l.title, position, name, seconds, price FROM track LEFT JOIN album l ON l.id = album_id ORDER BY 1, 2, 3
    """,
    "customer": "SELECT email, name, city, phone FROM customer ORDER BY 1, 2",
    "invoice": "SELECT c.email, day FROM invoice LEFT JOIN customer c ON c.id = customer_id ORDER BY 1, 2",
    "invoice_line": """
    SELECT c.email, i.day, t.name, n.price, quantity FROM invoice_line n LEFT JOIN invoice i ON i.id = invoice_id
    LEFT JOIN customer c ON c.id = customer_id LEFT JOIN track t ON t.id = track_id ORDER BY 1, 2, 3, 4, 5
    """,
    "playlist": "SELECT name, note FROM playlist ORDER BY 1",
    "playlist_track": """
    SELECT playlist, t.name FROM playlist_track LEFT JOIN track t ON t.id = track_id ORDER BY 1, 2
    """,
    "voucher": "SELECT code, percent, note FROM voucher ORDER BY 1",
  ]

  /// Artist, album, and its tracks as name and seconds.
  private static let catalogue: [(artist: String, album: String, tracks: [(String, Int)])] = [
    ("The Quiet Ferry", "Slack Water", [("Moorings", 214), ("Fog Signal", 187), ("Low Tide Road", 251)]),
    ("The Quiet Ferry", "Night Crossing", [("Car Deck", 199), ("Harbour Lights", 305), ("Home Port", 176)]),
    ("Ada Lindqvist", "Paper Orchard", [("Pips", 142), ("Windfall", 233), ("Grafting", 208), ("Cider Hymn", 264)]),
    ("Okra & Thyme", "Kitchen Tapes", [("Boil Over", 121), ("Slow Braise", 402), ("Salt", 95)]),
    ("Trio Basalt", "Columns", [("Hexagon", 331), ("Giant's Step", 287), ("Cooling", 412)]),
    ("Marisol Vega", "Tejados", [("Antenas", 203), ("Ropa Blanca", 192), ("Gatos", 178), ("Siesta", 240)]),
  ]

  private static let customers = [
    ("Ines Okafor", "Lisbon", "555-0101", "ines@example.org"), ("Jonas Weber", "Kiel", "555-0102", "jonas@example.org"),
    ("Mei Tanaka", "Osaka", "555-0103", "mei@example.org"), ("Paul Durand", "Nantes", "555-0104", "paul@example.org"),
  ]

  /// Makes the tables.
  static func create(_ connection: Connection) throws {
    try connection.transaction { try connection.execute(schema) }
  }

  /// Fills the tables.
  static func fill(_ connection: Connection) throws {
    try connection.transaction {
      try fillCatalogue(connection)
      for customer in customers {
        try connection.run(
          "INSERT INTO customer (name, city, phone, email) VALUES (?, ?, ?, ?)", .text(customer.0), .text(customer.1),
          .text(customer.2), .text(customer.3))
      }
      try connection.execute(
        """
        INSERT INTO invoice (customer_id, day) SELECT id, '2026-10-0' || id FROM customer;
        INSERT INTO invoice (customer_id, day) SELECT id, '2026-11-1' || id FROM customer;
        INSERT INTO invoice_line (invoice_id, track_id, price)
          SELECT i.id, t.id, t.price FROM invoice i JOIN track t ON t.id % 8 + 1 = i.id;
        INSERT INTO playlist VALUES ('Morning', 'until the second coffee'), ('Rain', NULL);
        INSERT INTO playlist_track SELECT 'Morning', id FROM track WHERE seconds < 200;
        INSERT INTO playlist_track SELECT 'Rain', id FROM track WHERE seconds > 250;
        INSERT INTO voucher VALUES ('AUTUMN', 10, 'leaflet of September'), ('FRIENDS', 15, 'ask for the name');
        """)
    }
  }

  private static func fillCatalogue(_ connection: Connection) throws {
    for entry in catalogue {
      if try connection.scalar("SELECT 1 FROM artist WHERE name = ?", .text(entry.artist)) == nil {
        try connection.run("INSERT INTO artist (name) VALUES (?)", .text(entry.artist))
      }
      try connection.run(
        "INSERT INTO album (title, artist_id) SELECT ?, id FROM artist WHERE name = ?", .text(entry.album),
        .text(entry.artist))
      let album = connection.lastInsertRowID
      for (index, track) in entry.tracks.enumerated() {
        try connection.run(
          "INSERT INTO track (album_id, position, name, seconds, price) VALUES (?, ?, ?, ?, 1.29)", .integer(album),
          .integer(Int64(index + 1)), .text(track.0), .integer(Int64(track.1)))
      }
    }
  }
}
