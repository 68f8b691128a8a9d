/// The simulation's source of chance: SplitMix64, a value, the same numbers for the same seed on every machine
/// (DESIGN G9).
struct Chance: Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }

  /// A number from 0 to `bound` − 1.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  /// True in `percent` of 100 calls.
  mutating func happens(_ percent: Int) -> Bool { below(100) < percent }

  mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

  /// One of the values, each as likely as its weight.
  mutating func pick<Element>(weighted choices: [(Int, Element)]) -> Element {
    var draw = below(choices.reduce(0) { $0 + $1.0 })
    for (weight, value) in choices {
      if draw < weight { return value }
      draw -= weight
    }
    return choices[choices.count - 1].1
  }
}
