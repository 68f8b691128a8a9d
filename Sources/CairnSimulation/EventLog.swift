/// What happened in a run, line by line, with a hash over all of it: two runs are the same when their hashes are.
struct EventLog {
  private(set) var lines: [String] = []
  /// FNV-1a over the lines, each with its line end.
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func add(_ line: String) {
    for byte in line.utf8 { mix(byte) }
    mix(10)
    lines.append(line)
  }

  private mutating func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
}
