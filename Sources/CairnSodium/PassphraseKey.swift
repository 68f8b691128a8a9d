import CSodium
import CairnAccounts
import Foundation

/// The key of a folder of credentials, made from a passphrase by Argon2id.
///
/// `key.json` in the folder holds the salt, how costly the making is, and a sealed word by which a wrong passphrase is
/// told. It is of no use without the passphrase; without it the passphrase is of no use.
extension SodiumEncryption {
  private struct KeyFile: Codable {
    var version = 1
    var salt: Data
    /// Passes, and bytes of memory, as `crypto_pwhash` takes them.
    var operations: UInt64
    var memory: Int
    var check: Data?
  }

  private static let checkWord = Data("cairn".utf8)

  /// Whether credentials in a folder are encrypted with a passphrase.
  public static func isSetUp(in folder: URL) -> Bool {
    FileManager.default.fileExists(atPath: path(folder))
  }

  /// The encryption of a folder, which is set up by the first use. Takes about a tenth of a second and 64 MB.
  ///
  /// - Throws: ``SodiumError/wrongPassphrase``; ``SodiumError/keyFile(_:)`` where `key.json` can't be read or written.
  public init(passphrase: String, folder: URL) throws(SodiumError) {
    guard Self.isReady else { throw .notAvailable }
    guard Self.isSetUp(in: folder) else {
      try self.init(settingUp: folder, passphrase)
      return
    }
    let file: KeyFile
    do {
      file = try JSONDecoder().decode(KeyFile.self, from: Data(contentsOf: URL(fileURLWithPath: Self.path(folder))))
    } catch {
      throw .keyFile(Self.path(folder))
    }
    // A file that somebody has changed must not make this use up the machine.
    guard file.version == 1, file.salt.count == Int(crypto_pwhash_SALTBYTES), (1...20).contains(file.operations),
      (8_192...1 << 30).contains(file.memory), let check = file.check
    else { throw .keyFile(Self.path(folder)) }
    try self.init(key: Self.key(passphrase, file))
    do {
      guard try open(check) == Self.checkWord else { throw SodiumError.wrongPassphrase }
    } catch { throw .wrongPassphrase }
  }

  private init(settingUp folder: URL, _ passphrase: String) throws(SodiumError) {
    var salt = [UInt8](repeating: 0, count: Int(crypto_pwhash_SALTBYTES))
    randombytes_buf(&salt, salt.count)
    var file = KeyFile(
      salt: Data(salt), operations: UInt64(crypto_pwhash_OPSLIMIT_INTERACTIVE),
      memory: Int(crypto_pwhash_MEMLIMIT_INTERACTIVE))
    try self.init(key: Self.key(passphrase, file))
    file.check = try seal(Self.checkWord)
    do {
      try FileCredentialStore.writePrivately(JSONEncoder().encode(file), to: Self.path(folder))
    } catch {
      throw .keyFile(Self.path(folder))
    }
  }

  private static func path(_ folder: URL) -> String { folder.appendingPathComponent("key.json").path }

  private static func key(_ passphrase: String, _ file: KeyFile) throws(SodiumError) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: keyLength)
    let bytes = Array(passphrase.utf8).map { CChar(bitPattern: $0) }
    let code = crypto_pwhash(
      &key, UInt64(key.count), bytes, UInt64(bytes.count), Array(file.salt), file.operations, file.memory,
      crypto_pwhash_ALG_ARGON2ID13)
    guard code == 0 else { throw .notAvailable }
    return key
  }
}
