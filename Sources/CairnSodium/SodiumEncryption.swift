import CSodium
import CairnAccounts
import Foundation

/// Encrypts the files of a `FileCredentialStore` with libsodium: XChaCha20-Poly1305, a nonce of its own for every file.
///
/// A sealed file is `cairn1`, the nonce (24 bytes) and the cipher text with its tag. Values may be used from any
/// thread.
public struct SodiumEncryption: FileEncryption {
  private static let mark = Array("cairn1".utf8)
  private static let nonceLength = Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
  private static let tagLength = Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)

  /// Bytes of a key.
  public static let keyLength = Int(crypto_aead_xchacha20poly1305_ietf_KEYBYTES)

  private let key: [UInt8]

  /// - Parameter key: ``keyLength`` random bytes, from wherever the app keeps such.
  /// - Throws: ``SodiumError/wrongKeyLength``, or ``SodiumError/notAvailable`` where libsodium can't work.
  public init(key: [UInt8]) throws(SodiumError) {
    guard Self.isReady else { throw .notAvailable }
    guard key.count == Self.keyLength else { throw .wrongKeyLength }
    self.key = key
  }

  /// `sodium_init` must run before anything else; it may run again.
  static var isReady: Bool { sodium_init() >= 0 }

  public func seal(_ plain: Data) throws(SodiumError) -> Data {
    var nonce = [UInt8](repeating: 0, count: Self.nonceLength)
    randombytes_buf(&nonce, nonce.count)
    var cipher = [UInt8](repeating: 0, count: plain.count + Self.tagLength)
    let code = crypto_aead_xchacha20poly1305_ietf_encrypt(
      &cipher, nil, Array(plain), UInt64(plain.count), Self.mark, UInt64(Self.mark.count), nil, nonce, key)
    guard code == 0 else { throw .notAvailable }
    return Data(Self.mark + nonce + cipher)
  }

  /// - Throws: ``SodiumError/notOpened`` for what was not sealed with this key, or was changed since.
  public func open(_ sealed: Data) throws(SodiumError) -> Data {
    let bytes = Array(sealed)
    let head = Self.mark.count + Self.nonceLength
    guard bytes.count >= head + Self.tagLength, bytes.starts(with: Self.mark) else { throw .notOpened }
    let nonce = Array(bytes[Self.mark.count..<head])
    let cipher = Array(bytes[head...])
    // One more, so that there is an address where nothing was sealed.
    var plain = [UInt8](repeating: 0, count: cipher.count - Self.tagLength + 1)
    let code = crypto_aead_xchacha20poly1305_ietf_decrypt(
      &plain, nil, nil, cipher, UInt64(cipher.count), Self.mark, UInt64(Self.mark.count), nonce, key)
    guard code == 0 else { throw .notOpened }
    return Data(plain.dropLast())
  }
}

/// Why something can't be sealed or opened.
public enum SodiumError: Error, Hashable, Sendable, CustomStringConvertible {
  case notAvailable
  case wrongKeyLength
  /// Another key, or damaged.
  case notOpened
  case wrongPassphrase
  /// What is kept beside the credentials for the passphrase can't be read or written; a path.
  case keyFile(String)

  public var description: String {
    switch self {
    case .notAvailable: "libsodium can't be used, or memory is short"
    case .wrongKeyLength: "a key has \(SodiumEncryption.keyLength) bytes"
    case .notOpened: "it was sealed with another key, or is damaged"
    case .wrongPassphrase: "the passphrase is not the one with which the credentials were encrypted"
    case .keyFile(let path): "\(path) can't be read or written"
    }
  }
}
