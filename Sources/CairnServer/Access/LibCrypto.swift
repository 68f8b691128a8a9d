import CCrypto

enum SHA256Hash {
  static func of(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBufferPointer { of($0) } }

  static func of(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { out, used in
      _ = SHA256(bytes.baseAddress, bytes.count, out.baseAddress)
      used = 32
    }
  }
}

/// What libcrypto reads from texts in PEM. Whatever is read belongs to the caller.
enum PEM {
  /// Calls `body` with a BIO of the text; it returns nil for what it can't read.
  static func read<Found>(_ text: String, _ body: (OpaquePointer) -> Found?) -> Found? {
    var text = text
    return text.withUTF8 { bytes in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer { BIO_free(bio) }
      return body(bio)
    }
  }

  /// A private key without password; one with a password is none.
  static func readPrivateKey(_ text: String) -> OpaquePointer? {
    read(text) { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in 0 }, nil) }
  }
}
