import CairnAccounts
import CairnRecords
import CairnTables
import Foundation

/// The logins of a release older than accounts: a JSON file of flags and credentials.
///
/// ```json
/// {"version": 1, "instances": [
///   {"id": "0a6e…", "service": "mastodon", "url": "https://example.social", "flag": true,
///    "credential": {"userName": "ada", "secret": "…", "revision": "3"}}]}
/// ```
///
/// `service`, `flag`, `credential`, and in it `userName` and `revision`, may be missing. Only a credential is ever
/// removed from it, when its account is deleted (accounts.md A15); flags never change (A17).
struct LegacyFile: KeyValueStore {
  let path: String

  private struct Contents: Codable {
    struct Instance: Codable {
      var id: String
      var service: String?
      var url: String
      var flag: Bool?
      var credential: Item?
    }
    struct Item: Codable {
      var userName: String?
      var secret: String
      var revision: String?
    }
    var version: Int?
    var instances: [Instance]
  }

  private enum Reading {
    case missing
    case unreadable
    case contents(Contents)
  }

  private func read() -> Reading {
    do {
      return .contents(try JSONDecoder().decode(Contents.self, from: Data(contentsOf: URL(fileURLWithPath: path))))
    } catch CocoaError.fileReadNoSuchFile { return .missing } catch { return .unreadable }
  }

  /// Whether the file is there and in this form.
  var isReadable: Bool { if case .contents = read() { true } else { false } }

  func legacyInstances() -> [LegacyInstance] {
    guard case .contents(let contents) = read() else { return [] }
    return contents.instances.compactMap { instance in
      guard let id = InstanceID(instance.id) else { return nil }
      return LegacyInstance(
        id: id, service: instance.service ?? "login", url: instance.url, flag: instance.flag ?? false,
        userName: instance.credential?.userName)
    }
  }

  func changes() -> AsyncStream<KeyValueChange> { AsyncStream { $0.finish() } }

  func credential(_ id: InstanceID) -> CredentialLookup {
    switch read() {
    case .missing: return .absent
    case .unreadable: return .unavailable
    case .contents(let contents):
      guard let item = contents.instances.first(where: { InstanceID($0.id) == id })?.credential else { return .absent }
      return .found(Credential(userName: item.userName, secret: Data(item.secret.utf8), revision: item.revision))
    }
  }

  func removeCredential(_ id: InstanceID) throws(CredentialStoreError) -> CredentialWrite {
    switch read() {
    case .missing: return .done
    case .unreadable: return .unavailable
    case .contents(var contents):
      guard let index = contents.instances.firstIndex(where: { InstanceID($0.id) == id }),
        contents.instances[index].credential != nil
      else { return .done }
      contents.instances[index].credential = nil
      do {
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        try JSONEncoder().encode(contents).write(to: URL(fileURLWithPath: path), options: .atomic)
        if let mode { try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path) }
      } catch { throw CredentialStoreError("\(path) can't be written") }
      return .done
    }
  }
}

/// The secrets of a profile: its own files, and what the older release left.
struct ProfileCredentials: CredentialStore {
  let files: FileCredentialStore
  let legacy: LegacyFile

  func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup {
    if case .legacy(let id) = key { return legacy.credential(id) }
    return try files.credential(for: key)
  }

  func replace(_ credential: Credential, for key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite {
    try files.replace(credential, for: key)
  }

  func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite {
    if case .legacy(let id) = key { return try legacy.removeCredential(id) }
    return try files.delete(key)
  }
}

/// Instances of the command line: those that the older release knew, and those that an address names.
enum InstanceNames {
  /// The ID of an instance: the one under which its address is known, else one that every device derives alike.
  static func id(_ url: String, _ profile: AccountsProfile) -> InstanceID {
    let cleaned = InstanceURL.cleaned(url) ?? url
    let legacy = profile.core.keyValues.legacyInstances().first { InstanceURL.cleaned($0.url) == cleaned }?.id
    let known = profile.core.snapshot.accounts.first { $0.instanceURL == cleaned }?.instanceID
    return legacy ?? known ?? derived(cleaned)
  }

  /// A UUID (version 8, made from a hash of the address).
  private static func derived(_ url: String) -> InstanceID {
    var bytes = Array(SHA256.digest(Array("cairn instance \(url)".utf8))[..<16])
    bytes[6] = bytes[6] & 0x0f | 0x80
    bytes[8] = bytes[8] & 0x3f | 0x80
    var text = ""
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { text += "-" }
      text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
    guard let id = InstanceID(text) else { preconditionFailure("\(text) is a UUID") }
    return id
  }
}
