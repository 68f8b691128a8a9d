import CairnSQLite

/// One of the demonstration's two devices: a database file, written with plain SQL as any program would.
struct DemoDevice {
  /// As it is called in the text: `laptop`.
  let name: String
  let file: String

  func open() throws -> Connection {
    let connection = try Connection(path: file, mode: .create)
    try connection.execute("PRAGMA foreign_keys = ON")
    return connection
  }

  /// Runs SQL in one transaction.
  func write(_ sql: String) throws {
    let connection = try open()
    try connection.transaction { try connection.execute(sql) }
  }

  /// The first column of a query's first row, as text.
  func text(_ query: String) throws -> String {
    switch try open().scalar(query) {
    case .text(let text): text
    case .integer(let integer): String(integer)
    case .real(let real): String(real)
    default: ""
    }
  }

  /// Number of rows of all tables.
  func rowCount() throws -> Int {
    let connection = try open()
    return try DemoShop.tables.reduce(0) { try $0 + connection.rows("SELECT 1 FROM \($1)").count }
  }

  /// What a table holds, in words that don't depend on the device.
  func contents(_ table: String) throws -> [[Value]] {
    try open().rows(DemoShop.contents[table] ?? "SELECT * FROM \(table)")
  }
}
