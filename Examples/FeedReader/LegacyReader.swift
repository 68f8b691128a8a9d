import CairnAccounts
import Foundation

/// Release 1 of the reader, as far as it left something behind: one login per instance, a flag in the key-value store,
/// and the secret under the instance's ID. It knows no accounts.
struct LegacyReader {
  let folder: URL

  private var path: URL { folder.appendingPathComponent("flags.json") }

  /// Which instances release 1 is logged in to.
  func flags() -> [String: Bool] {
    guard let data = FileManager.default.contents(atPath: path.path) else { return [:] }
    do { return try JSONDecoder().decode([String: Bool].self, from: data) } catch { return [:] }
  }

  func logIn(to instance: Instance, as user: String, secret: String) throws {
    let secrets = try FileCredentialStore(directory: folder.appendingPathComponent("secrets"))
    _ = try secrets.replace(
      Credential(userName: user, secret: Data(secret.utf8), revision: "1"), for: .legacy(instance.id))
    var flags = flags()
    flags[instance.id.rawValue] = true
    try JSONEncoder().encode(flags).write(to: path, options: .atomic)
  }
}

/// What release 2 sees of release 1: flags, read only.
struct LegacyFlags: KeyValueStore {
  let reader: LegacyReader

  func legacyInstances() -> [LegacyInstance] {
    let flags = reader.flags()
    return Instance.all.map {
      LegacyInstance(id: $0.id, service: $0.kind.rawValue, url: $0.url, flag: flags[$0.id.rawValue] ?? false)
    }
  }

  func changes() -> AsyncStream<KeyValueChange> { AsyncStream { $0.finish() } }
}
