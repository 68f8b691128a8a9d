/// A strict total order of tables, parents before children (tables U4).
struct TableRanks {
  /// Place of each table, from 0.
  private(set) var ranks: [Int]
  private(set) var isInCycle: [Bool]

  /// - Parameters:
  ///   - names: breaks ties and cycles, so that devices with the same tables agree.
  ///   - parents: for each table the tables that it refers to.
  init(names: [String], parents: [Set<Int>]) {
    let count = names.count
    ranks = Array(repeating: 0, count: count)
    let reaches = Self.closure(parents)
    isInCycle = (0..<count).map { a in (0..<count).contains { $0 != a && reaches[a][$0] && reaches[$0][a] } }
    var left = Set(0..<count)
    var rank = 0
    while !left.isEmpty {
      // First a table without parents that are left; then one whose parents all depend on it in turn, that is a member
      // of a cycle that nothing outside holds up. There always is one.
      let free = left.filter { parents[$0].intersection(left).subtracting([$0]).isEmpty }
      let heldByCycleOnly = left.filter { a in left.allSatisfy { !reaches[a][$0] || $0 == a || reaches[$0][a] } }
      let candidates = free.isEmpty ? heldByCycleOnly : free
      guard let next = candidates.min(by: { (names[$0], $0) < (names[$1], $1) }) else { return }
      ranks[next] = rank
      rank += 1
      left.remove(next)
    }
  }

  /// Which tables each table refers to in any number of steps.
  private static func closure(_ parents: [Set<Int>]) -> [[Bool]] {
    let count = parents.count
    var reaches = parents.map { set in (0..<count).map { set.contains($0) } }
    for via in 0..<count {
      for a in 0..<count where reaches[a][via] {
        for b in 0..<count where reaches[via][b] { reaches[a][b] = true }
      }
    }
    return reaches
  }
}
