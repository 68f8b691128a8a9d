import Foundation
import Testing

/// `CAIRN_ACCOUNTS_RUNS=10000` makes more of them; `CAIRN_ACCOUNTS_SEED=N` one.
@Suite struct RandomizedAccountsTests {
  private static let runs = number("CAIRN_ACCOUNTS_RUNS") ?? 120
  private static let seed = number("CAIRN_ACCOUNTS_SEED")

  private static let restores = number("CAIRN_ACCOUNTS_RESTORES") == 1

  private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

  /// Seeds that found something: a deletion that was not published after its zone was lost; records staged from a lost
  /// zone; a choice of a deleted account that one device kept to itself after its zone was lost.
  @Test("accounts.md S77: seeds that once failed", arguments: [728, 3_971, 9_065])
  func regressions(seed: UInt64) throws { try AccountsRun(seed: seed).run(steps: 80) }

  @Test("accounts.md S77: three devices, two users, crashes, switches and faults keep I1–I8", arguments: 0..<4)
  func s77(part: Int) throws {
    if let seed = Self.seed {
      if part == 0 { try AccountsRun(seed: UInt64(seed), restores: Self.restores).run(steps: 80) }
      return
    }
    for seed in stride(from: part, to: Self.runs, by: 4) {
      try AccountsRun(seed: UInt64(seed), restores: Self.restores).run(steps: 80)
    }
  }
}
