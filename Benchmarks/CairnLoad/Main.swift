import Foundation
import Synchronization

/// Many devices on one server, with faults between them and it (docs/benchmarks.md).
///
///     CairnLoad LIST --seconds N [--faults PERCENT] [--threads N] [--seed N]
///
/// LIST has a line per device: group, file and token, with tabs between them. Devices of one group sync with one zone,
/// and must have equal tables in the end. Prints one JSON object; exit code 1 where devices differ or do not come to
/// rest.
@main
enum Main {
  static func main() {
    do {
      exit(try run(Options(CommandLine.arguments.dropFirst())))
    } catch {
      FileHandle.standardError.write(Data("load: \(error)\n".utf8))
      exit(2)
    }
  }

  private static func run(_ options: Options) throws -> Int32 {
    let places = try places(options.list)
    let outcome = try fleet(places, options)
    var groups: [String: Set<String>] = [:]
    for place in places { groups[place.group, default: []].insert(outcome.contents[place.path] ?? "not there") }
    let differing = groups.filter { $0.value.count > 1 }.keys.sorted()
    let times = outcome.counts.times.sorted()
    let report: [String: Any] = [
      "devices": places.count, "seconds": options.seconds, "syncs": outcome.syncs, "syncsFailed": outcome.failures,
      "requests": outcome.counts.requests, "records": outcome.counts.records, "serverErrors": outcome.counts.errors,
      "medianMs": times.isEmpty ? 0 : times[times.count / 2],
      "p99Ms": times.isEmpty ? 0 : times[times.count * 99 / 100],
      "unsettled": outcome.unsettled, "differing": differing,
    ]
    let json = try JSONSerialization.data(withJSONObject: report, options: [.sortedKeys])
    print(String(decoding: json, as: UTF8.self))
    return differing.isEmpty && outcome.unsettled.isEmpty ? 0 : 1
  }

  // MARK: Threads

  /// Each thread has devices of its own from its start to its end; between the phases all wait for each other.
  private static func fleet(_ places: [Place], _ options: Options) throws -> Crew.Outcome {
    let shared = Mutex((outcome: Crew.Outcome(), failures: [String]()))
    let end = ContinuousClock.now + .seconds(options.seconds)
    let barrier = Barrier(options.threads)
    let threads = (0..<options.threads).map { index in
      let own = places.enumerated().filter { $0.offset % options.threads == index }
      return Thread {
        do {
          let crew = Crew(
            try own.map {
              try LoadDevice(
                path: $1.path, token: $1.token, seed: options.seed &+ UInt64($0) &* 1_000, faultPercent: options.faults)
            })
          try crew.work(until: end)
          var isSettled = false
          for round in 0..<40 where !isSettled {
            // A server that has put a device off is not asked before its time is over.
            if round > 1 { Thread.sleep(forTimeInterval: 0.5) }
            barrier.wait()
            let isQuiet = try crew.settle()
            isSettled = barrier.agree(isQuiet)
          }
          try crew.finish()
          shared.withLock {
            $0.outcome.add(crew.outcome)
            if !isSettled { $0.outcome.unsettled.append("thread \(index)") }
          }
        } catch { shared.withLock { $0.failures.append("\(error)") } }
        barrier.leave()
      }
    }
    for thread in threads { thread.start() }
    barrier.waitUntilAllLeft()
    if let failure = shared.withLock({ $0.failures.first }) { throw LoadFailure(failure) }
    return shared.withLock { $0.outcome }
  }

  // MARK: Input

  struct Place: Sendable {
    var group: String
    var path: String
    var token: String
  }

  private static func places(_ list: String) throws -> [Place] {
    try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: "\t").map(String.init)
      guard words.count == 3 else { throw LoadFailure("\(list): a line has a group, a file and a token") }
      return Place(group: words[0], path: words[1], token: words[2])
    }
  }

  struct Options: Sendable {
    var list = ""
    var seconds = 60
    var faults = 0
    var threads = 4
    var seed: UInt64 = 1

    init(_ arguments: ArraySlice<String>) throws {
      var words = Array(arguments)
      while !words.isEmpty {
        let word = words.removeFirst()
        guard word.hasPrefix("--") else {
          list = word
          continue
        }
        guard !words.isEmpty, let number = Int(words.removeFirst()), number >= 0 else {
          throw LoadFailure("\(word) needs a number")
        }
        switch word {
        case "--seconds": seconds = number
        case "--faults": faults = number
        case "--threads": threads = max(1, number)
        case "--seed": seed = UInt64(number)
        default: throw LoadFailure("there is no option \(word)")
        }
      }
      if list.isEmpty {
        throw LoadFailure("usage: CairnLoad LIST --seconds N [--faults PERCENT] [--threads N] [--seed N]")
      }
    }
  }
}
