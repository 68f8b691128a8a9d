import CairnEngine
import CairnTables
import Foundation

/// The devices of one worker thread, and what became of their syncs.
final class Crew {
  struct Outcome: Sendable {
    var syncs = 0
    /// Syncs that ended with a failure, by its kind.
    var failures: [String: Int] = [:]
    var counts = CountedCloud.Counts()
    /// Contents of each device's table, by file.
    var contents: [String: String] = [:]
    var unsettled: [String] = []

    mutating func add(_ other: Outcome) {
      syncs += other.syncs
      failures.merge(other.failures, uniquingKeysWith: +)
      counts.add(other.counts)
      contents.merge(other.contents) { $1 }
      unsettled += other.unsettled
    }
  }

  private let devices: [LoadDevice]
  private(set) var outcome = Outcome()

  init(_ devices: [LoadDevice]) { self.devices = devices }

  /// Edits and syncs one device after the other until the time is over.
  func work(until end: ContinuousClock.Instant) throws {
    while ContinuousClock.now < end {
      for device in devices where ContinuousClock.now < end {
        try device.edit()
        try sync(device)
      }
    }
  }

  /// One sync of every device without faults; tells whether all were quiet.
  func settle() throws -> Bool {
    var isQuiet = true
    for device in devices {
      device.heal()
      let report = try device.run()
      if !report.quiet || report.counts != TablesCounts() { isQuiet = false }
    }
    return isQuiet
  }

  func finish() throws {
    for device in devices {
      outcome.counts.add(device.counted.counts)
      outcome.contents[device.path] = try device.contents()
    }
  }

  private func sync(_ device: LoadDevice) throws {
    let report = try device.run()
    outcome.syncs += 1
    if let failure = report.result.failure { outcome.failures["\(failure)".prefixWord, default: 0] += 1 }
  }
}

extension String {
  /// The first word: of an enumeration's case, its name.
  fileprivate var prefixWord: String { String(prefix { $0.isLetter }) }
}
