import CCrypto

/// An ECDSA key on the curve P-256, as server-to-server keys are (web-services section 3). Immutable.
public final class P256Key: @unchecked Sendable {
  // libcrypto allows a key that nobody changes to be used by many threads at once.
  private let key: OpaquePointer

  private init(_ key: OpaquePointer) { self.key = key }
  deinit { EVP_PKEY_free(key) }

  /// A new pair.
  public static func generate() -> P256Key? { cairn_p256_generate().map { P256Key($0) } }

  /// A public key in PEM, or the public half of a pair in PEM. Nil for anything else, other curves included.
  public convenience init?(pem text: String) {
    let found = PEM.read(text) { PEM_read_bio_PUBKEY($0, nil, nil, nil) } ?? PEM.readPrivateKey(text)
    guard let found else { return nil }
    self.init(found)
    guard isP256 else { return nil }
  }

  /// A `SubjectPublicKeyInfo` in DER.
  convenience init?(der bytes: [UInt8]) {
    let key = bytes.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      return d2i_PUBKEY(nil, &start, buffer.count)
    }
    guard let key else { return nil }
    self.init(key)
    guard isP256 else { return nil }
  }

  private var isP256: Bool {
    var name = [CChar](repeating: 0, count: 40)
    guard EVP_PKEY_get_group_name(key, &name, name.count, nil) == 1 else { return false }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
  }

  /// The public half, as `SubjectPublicKeyInfo` in DER.
  public var der: [UInt8] {
    let count = i2d_PUBKEY(key, nil)
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
      var start = buffer.baseAddress
      used = max(0, Int(i2d_PUBKEY(key, &start)))
    }
  }

  /// The private half in PEM (PKCS 8); nil for a public key.
  public var privatePEM: String? {
    guard let bio = BIO_new(BIO_s_mem()) else { return nil }
    defer { BIO_free(bio) }
    guard PEM_write_bio_PrivateKey(bio, key, nil, nil, 0, nil, nil) == 1 else { return nil }
    var contents: UnsafeMutablePointer<CChar>?
    let count = cairn_bio_contents(bio, &contents)
    guard let contents else { return nil }
    return String(decoding: UnsafeRawBufferPointer(start: contents, count: count), as: UTF8.self)
  }

  /// Whether a signature in DER is this key's over the SHA-256 of `message`.
  func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1 else { return false }
    return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  /// Signs the SHA-256 of `message`; nil for a public key.
  func signature(of message: [UInt8]) -> [UInt8]? {
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else { return nil }
    var count = 128
    var signature = [UInt8](repeating: 0, count: count)
    guard EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else { return nil }
    return Array(signature.prefix(count))
  }

  /// The number `r` of a signature in DER: 32 bytes that its maker drew. Whoever repeats a signature, in whatever
  /// spelling, repeats this number.
  static func nonce(of signature: [UInt8]) -> [UInt8]? {
    let parsed = signature.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &start, buffer.count)
    }
    guard let parsed else { return nil }
    defer { ECDSA_SIG_free(parsed) }
    guard let r = ECDSA_SIG_get0_r(parsed) else { return nil }
    var bytes = [UInt8](repeating: 0, count: 32)
    return BN_bn2binpad(r, &bytes, 32) == 32 ? bytes : nil
  }
}
