/// SQL text as the key of the statement cache.
///
/// Texts are long and looked up for every row, so only a few of their bytes are hashed; what is equal is decided by all
/// of them, at no cost for one string that is looked up again and again.
struct StatementKey: Hashable {
  let sql: String

  func hash(into hasher: inout Hasher) {
    let sample = sql.utf8.withContiguousStorageIfAvailable { bytes -> UInt64 in
      var sample = UInt64(truncatingIfNeeded: bytes.count)
      for place in [3, 5, 7] where bytes.count >= 8 * place {
        let word = UnsafeRawBufferPointer(bytes).loadUnaligned(
          fromByteOffset: bytes.count / 8 * place - 8, as: UInt64.self)
        sample = (sample ^ word) &* 0x9e37_79b9_7f4a_7c15
      }
      return sample
    }
    hasher.combine(sample ?? UInt64(sql.utf8.count))
  }
}
