import CairnRecords
import CairnServerCore

/// What `cairn server token` and `cairn server key` do, also while a server runs on the same folder.
public struct AppAdministration: Sendable {
  private let storage: any Storage
  private let directory: AppDirectory
  private let randomness: any ServerRandomness

  /// Opens a data folder, creating it where it is missing.
  public init(data path: String, randomness: any ServerRandomness = SystemServerRandomness()) throws(ServerStartError) {
    self.init(storage: try DataDirectory(path).openStorage(), randomness: randomness)
  }

  /// Works on an open store.
  public init(storage: any Storage, randomness: any ServerRandomness = SystemServerRandomness()) {
    self.storage = storage
    directory = AppDirectory(storage: storage)
    self.randomness = randomness
  }

  /// Makes an API token: 64 hex digits, which are not stored and can't be shown again.
  public func addToken(
    _ name: String, container: String?, switches: Set<CompatibilitySwitch>, origins: [String]
  ) throws(CloudError) -> String {
    let bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: randomness.next()) { Array($0) } }
    let token = Hexadecimal.text(bytes)
    try directory.add(
      AppCredential(
        kind: .apiToken, id: WebAuthToken.hash(token), name: name, container: container, switches: switches,
        origins: origins, created: 0))
    return token
  }

  /// Lets a server in that signs with the private half of the key.
  ///
  /// - Returns: the key ID, 64 hex digits.
  public func addKey(
    _ name: String, _ key: P256Key, container: String?, switches: Set<CompatibilitySwitch>
  ) throws(CloudError) -> String {
    let der = key.der
    let id = SHA256Hash.of(der)
    try directory.add(
      AppCredential(
        kind: .serverKey, id: id, name: name, container: container, publicKey: der, switches: switches, created: 0))
    return Hexadecimal.text(id)
  }

  /// Those of one kind, by name.
  public func list(_ kind: AppCredential.Kind) throws(CloudError) -> [AppCredential] { try directory.list(kind) }

  /// Ends a credential.
  public func remove(_ kind: AppCredential.Kind, named name: String) throws(CloudError) {
    try directory.remove(kind, named: name)
  }

  /// Ends the use of the store.
  public func close() { storage.close() }
}
