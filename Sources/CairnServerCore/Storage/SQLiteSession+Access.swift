import CairnSQLite

/// Credentials of apps, and what users' records take.
extension SQLiteSession {
  // MARK: Usage

  func usage(of user: Int64) throws -> StoredUsage {
    let statement = try connection.cached("SELECT bytes, quota FROM user WHERE key = ?")
    defer { statement.reset() }
    try statement.bind(1, user)
    guard try statement.step() else { return StoredUsage(bytes: 0, quota: nil) }
    return StoredUsage(bytes: statement.integer(0), quota: statement.optionalInteger(1))
  }

  func setQuota(of user: Int64, _ bytes: Int64?) throws {
    try connection.run(
      "UPDATE user SET quota = ? WHERE key = ?", bytes.map { .integer($0) } ?? .null, .integer(user))
  }

  func addUsage(_ bytes: Int64, user: Int64, zone: Int64) throws {
    try connection.run("UPDATE zone SET bytes = bytes + ? WHERE key = ?", .integer(bytes), .integer(zone))
    try connection.run("UPDATE user SET bytes = bytes + ? WHERE key = ?", .integer(bytes), .integer(user))
  }

  // MARK: Credentials

  func appCredential(id: [UInt8]) throws -> AppCredential? {
    try credentials("WHERE id = ?", .blob(id)).first
  }

  func appCredentials() throws -> [AppCredential] { try credentials("WHERE ? IS NULL ORDER BY kind, name", .null) }

  private func credentials(_ condition: String, _ value: Value) throws -> [AppCredential] {
    let statement = try connection.cached(
      """
      SELECT number, kind, id, name, container, public_key, switches, origins, created FROM app_credential \(condition)
      """)
    defer { statement.reset() }
    try statement.bind(1, value)
    var found: [AppCredential] = []
    while try statement.step() {
      guard let kind = AppCredential.Kind(rawValue: statement.text(1)) else { continue }
      found.append(
        AppCredential(
          number: statement.integer(0), kind: kind, id: statement.blob(2), name: statement.text(3),
          container: statement.optionalText(4), publicKey: statement.blob(5),
          switches: AppCredential.switches(stored: statement.text(6)),
          origins: AppCredential.origins(stored: statement.text(7)), created: statement.integer(8)))
    }
    return found
  }

  func addAppCredential(_ credential: AppCredential) throws {
    try connection.run(
      """
      INSERT INTO app_credential (kind, id, name, container, public_key, switches, origins, created)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .text(credential.kind.rawValue), .blob(credential.id), .text(credential.name),
      credential.container.map { .text($0) } ?? .null, .blob(credential.publicKey),
      .text(credential.storedSwitches), .text(credential.storedOrigins), .integer(credential.created))
  }

  func removeAppCredential(id: [UInt8]) throws {
    try connection.run("DELETE FROM app_credential WHERE id = ?", .blob(id))
  }
}
