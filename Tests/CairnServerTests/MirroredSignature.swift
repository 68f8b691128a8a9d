import CCrypto
import Foundation

@testable import CairnServer

extension P256Key {
  /// Another spelling of a signature, `n - s` in place of `s`, which verifies like it.
  static func mirror(_ signature: [UInt8]) -> [UInt8]? {
    let parsed = signature.withUnsafeBufferPointer { buffer in
      var start = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &start, buffer.count)
    }
    guard let parsed, let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1) else { return nil }
    defer {
      ECDSA_SIG_free(parsed)
      EC_GROUP_free(group)
    }
    guard let s = BN_new(), let r = BN_dup(ECDSA_SIG_get0_r(parsed)) else { return nil }
    BN_sub(s, EC_GROUP_get0_order(group), ECDSA_SIG_get0_s(parsed))
    // Takes both over.
    ECDSA_SIG_set0(parsed, r, s)
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_ECDSA_SIG(parsed, &bytes)
    guard count > 0, let bytes else { return nil }
    defer { free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}
