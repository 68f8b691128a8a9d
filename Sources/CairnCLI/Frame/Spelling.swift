/// Finds what a mistyped word was meant to be.
enum Spelling {
  /// The candidate at most two edits (and less than half the word) away; the first of equals. Nil when none is near.
  static func closest(to word: String, in candidates: [String]) -> String? {
    let limit = min(2, max(1, word.count / 2))
    return
      candidates
      .map { (candidate: $0, distance: distance(Array(word), Array($0))) }
      .filter { $0.distance <= limit }
      .min { $0.distance < $1.distance }?.candidate
  }

  /// Insertions, removals and replacements between two words.
  private static func distance(_ one: [Character], _ other: [Character]) -> Int {
    var previous = Array(0...other.count)
    for (row, character) in one.enumerated() {
      var current = [row + 1]
      for (column, candidate) in other.enumerated() {
        let replaced = previous[column] + (character == candidate ? 0 : 1)
        current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
      }
      previous = current
    }
    return previous[other.count]
  }
}
