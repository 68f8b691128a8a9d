import CairnAccounts
import CairnRecords
import CairnSodium
import Foundation
import ProcessSupport
import Testing

@Suite("Encryption of credential files (accounts.md section 6)")
struct SodiumEncryptionTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var directory: URL { URL(fileURLWithPath: folder.file("credentials")) }
  private let secret = "correct horse battery"

  private func key(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: SodiumEncryption.keyLength) }

  private func store(_ encryption: (any FileEncryption)?) throws -> FileCredentialStore {
    try FileCredentialStore(directory: directory, encryption: encryption)
  }

  private func account(_ number: UInt8) throws -> CredentialKey {
    let id = try #require(AccountID("00000000-0000-4000-8000-0000000000\(number < 10 ? "0" : "")\(number)"))
    return .account(.identity("ada"), id)
  }

  private var credential: Credential { Credential(userName: "ada", secret: Data(secret.utf8), revision: "1") }

  /// Whether a text is in a file of the folder, as it is or as JSON would hold it.
  private func isReadable(_ text: String) throws -> Bool {
    try FileManager.default.contentsOfDirectory(atPath: directory.path).contains { name in
      let data = try Data(contentsOf: directory.appendingPathComponent(name))
      return data.range(of: Data(text.utf8)) != nil || data.range(of: Data(text.utf8).base64EncodedData()) != nil
    }
  }

  @Test("what was sealed is opened by its key alone, and not after any change; equal texts are sealed differently")
  func sealing() throws {
    let encryption = try SodiumEncryption(key: key(7))
    for plain in [Data(), Data([0]), Data(secret.utf8), Data(repeating: 3, count: 100_000)] {
      let sealed = try encryption.seal(plain)
      #expect(try encryption.open(sealed) == plain)
      #expect(try encryption.seal(plain) != sealed)
      #expect(throws: SodiumError.notOpened) { try SodiumEncryption(key: key(8)).open(sealed) }
    }
    let sealed = try encryption.seal(Data(secret.utf8))
    for i in sealed.indices {
      var changed = sealed
      changed[i] ^= 1
      #expect(throws: SodiumError.notOpened) { try encryption.open(changed) }
      #expect(throws: SodiumError.notOpened) { try encryption.open(sealed.prefix(i)) }
    }
    #expect(throws: SodiumError.wrongKeyLength) { try SodiumEncryption(key: [1, 2, 3]) }
  }

  @Test(
    "a store that encrypts keeps no secret readable; what was clear is read, and sealed by sealAll; another key reads nothing"
  )
  func storing() throws {
    let clear = try store(nil)
    #expect(try clear.replace(credential, for: account(1)) == .done)
    #expect(try isReadable(secret))
    let encryption = try SodiumEncryption(key: key(7))
    let sealing = try store(encryption)
    #expect(try sealing.credential(for: account(1)) == .found(credential))
    #expect(try sealing.replace(credential, for: account(2)) == .done)
    #expect(try sealing.sealAll() == 1)
    #expect(try sealing.sealAll() == 0)
    #expect(try !isReadable(secret) && !isReadable("userName"))
    for number in [1, 2] as [UInt8] {
      #expect(try sealing.credential(for: account(number)) == .found(credential))
      // Neither is it absent: nothing may be concluded (A13).
      for other in [nil, try SodiumEncryption(key: key(8))] {
        #expect(try store(other).credential(for: account(number)) == .unavailable)
      }
    }
    #expect(try sealing.credential(for: account(3)) == .absent)
  }

  @Test("sealAll that can't read a file says so: a secret may be in it")
  func unreadable() throws {
    let sealing = try store(SodiumEncryption(key: key(7)))
    try FileManager.default.createDirectory(
      at: directory.appendingPathComponent("id~unreadable"), withIntermediateDirectories: false)
    #expect(throws: CredentialStoreError.self) { try sealing.sealAll() }
  }

  @Test("a passphrase opens what it sealed; a wrong one is told, and so is a damaged or hostile key file")
  func passphrases() throws {
    _ = try store(nil)
    #expect(!SodiumEncryption.isSetUp(in: directory))
    let first = try SodiumEncryption(passphrase: "größe 1", folder: directory)
    #expect(SodiumEncryption.isSetUp(in: directory))
    let sealed = try first.seal(Data(secret.utf8))
    #expect(try SodiumEncryption(passphrase: "größe 1", folder: directory).open(sealed) == Data(secret.utf8))
    #expect(throws: SodiumError.wrongPassphrase) { try SodiumEncryption(passphrase: "größe 2", folder: directory) }
    let path = directory.appendingPathComponent("key.json")
    #expect(try FileManager.default.attributesOfItem(atPath: path.path)[.posixPermissions] as? Int == 0o600)
    let good = try String(contentsOf: path, encoding: .utf8)
    for (from, to) in [
      ("{", ""), ("\"version\":1", "\"version\":2"), ("67108864", "99999999999999"), ("\"check\"", "\"c\""),
    ] {
      #expect(good.contains(from))
      try good.replacing(from, with: to).write(to: path, atomically: false, encoding: .utf8)
      #expect(throws: SodiumError.keyFile(path.path)) { try SodiumEncryption(passphrase: "größe 1", folder: directory) }
    }
  }
}
