import Testing

@testable import CairnRecords

extension Int: MergeOrdered {
  public static func precedes(_ a: Int, _ b: Int) -> Bool { a < b }
}

/// SplitMix64, so that a failing seed can be run again.
struct Seeded: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}

@Suite("Merge of record versions (tables M2, M3)")
struct MergeTests {
  typealias Version = RecordVersion<Int>

  /// Every version over two fields, clocks 1–2, values 0–1, life 1–2, cut none or 1.
  static let small: [Version] = {
    let stamps: [StampedField<Int>?] =
      [nil] + [1, 2].flatMap { clock in [0, 1].map { StampedField(clock: clock, value: $0) } }
    var result: [Version] = []
    for life: Int64 in [1, 2] {
      for cut: Int64? in [nil, 1] {
        for a in stamps {
          for b in stamps {
            var fields: [String: StampedField<Int>] = [:]
            fields["a"] = a
            fields["b"] = b
            result.append(Version(life: life, cut: cut, fields: fields))
          }
        }
      }
    }
    return result
  }()

  @Test("M2 idempotent and commutative over every small pair")
  func smallPairs() {
    for x in Self.small {
      #expect(x.merged(with: x) == x)
      for y in Self.small where x.merged(with: y) != y.merged(with: x) {
        Issue.record("not commutative: \(x) and \(y)")
      }
    }
  }

  @Test("M2 associative over every small triple")
  func smallTriples() {
    for x in Self.small {
      for y in Self.small {
        let xy = x.merged(with: y)
        for z in Self.small where xy.merged(with: z) != x.merged(with: y.merged(with: z)) {
          Issue.record("not associative: \(x), \(y), \(z)")
        }
      }
    }
  }

  @Test("M2 any order and any repetition of many versions gives one result", arguments: [UInt64(1), 7, 42, 1_000])
  func anyOrder(seed: UInt64) {
    var random = Seeded(state: seed)
    for _ in 0..<200 {
      let versions = (0..<6).map { _ in
        Version(
          life: .random(in: 1...5, using: &random),
          cut: Bool.random(using: &random) ? .random(in: 1...4, using: &random) : nil,
          fields: Dictionary(
            uniqueKeysWithValues: ["a", "b", "c", "d"].map {
              ($0, StampedField(clock: .random(in: 1...6, using: &random), value: .random(in: 0...3, using: &random)))
            }))
      }
      let expected = versions.reduce(versions[0]) { $0.merged(with: $1) }
      let shuffled = (versions + versions.prefix(3)).shuffled(using: &random)
      #expect(shuffled.dropFirst().reduce(shuffled[0]) { $0.merged(with: $1) } == expected, "seed \(seed)")
    }
  }

  @Test("M2 the greater clock wins, a tie goes to the greater value")
  func winners() {
    #expect(mergeField(local: 2, remote: 1, localValue: 0, remoteValue: 9) == .local)
    #expect(mergeField(local: 1, remote: 2, localValue: 9, remoteValue: 0) == .remote)
    #expect(mergeField(local: 1, remote: 1, localValue: 1, remoteValue: 2) == .remote)
    #expect(mergeField(local: 1, remote: 1, localValue: 2, remoteValue: 2) == .equal)
    #expect(mergeField(local: nil, remote: 1, localValue: 0, remoteValue: 0) == .remote)
    #expect(mergeField(local: 1, remote: nil, localValue: 0, remoteValue: 0) == .local)
  }

  @Test("M2 fields at or below the cut belong to the dead row")
  func cut() {
    let old = Version(life: 1, fields: ["a": StampedField(clock: 3, value: 1), "b": StampedField(clock: 9, value: 1)])
    let reborn = Version(life: 8, cut: 5, fields: ["c": StampedField(clock: 8, value: 2)])
    let merged = old.merged(with: reborn)
    #expect(merged.fields["a"] == nil)
    #expect(merged.fields["b"]?.clock == 9)
    #expect(merged.life == 8 && merged.cut == 5)
    let border = ["at": StampedField(clock: 5, value: 1), "above": StampedField(clock: 6, value: 1)]
    #expect(Version(life: 8, cut: 5, fields: border).fields.keys.sorted() == ["above"])
  }
}

@Suite("Life of records (tables M5)")
struct LifeTests {
  @Test("M5 the later of edit and delete wins; equal clocks keep the row")
  func latestWins() {
    #expect(verdict(on: .clean(touch: 5), deletedAt: 6, now: 9) == .remove(at: 6))
    #expect(verdict(on: .clean(touch: 6), deletedAt: 6, now: 9) == .reassert(life: nil))
    #expect(verdict(on: .unsent(touch: 7), deletedAt: 6, now: 9) == .reassert(life: nil))
    #expect(verdict(on: .unsent(touch: 5), deletedAt: 6, now: 9) == .remove(at: 6))
  }

  @Test("M5 unknown time: an unsent edit lives on with a fresh life, a confirmed row goes")
  func unknownTime() {
    #expect(verdict(on: .unsent(touch: 5), deletedAt: nil, now: 9) == .reassert(life: 9))
    #expect(verdict(on: .unsent(touch: 20), deletedAt: nil, now: 9) == .reassert(life: 21))
    #expect(verdict(on: .clean(touch: 5), deletedAt: nil, now: 9) == .remove(at: 6))
  }

  @Test("M5 a fetched record revives a row deleted before its last edit")
  func revival() {
    #expect(revives(touch: 6, overDeleteAt: 6))
    #expect(!revives(touch: 5, overDeleteAt: 6))
  }
}
