import CairnServerCore
import Foundation

/// The threads that write. Jobs of one database wait in a lane: one thread at a time runs them, in their order, several
/// in one transaction where several wait. Lanes run beside each other, and beside those of other processes.
final class PostgresWriters: @unchecked Sendable {
  // Everything here is guarded by `condition`.
  private let condition = NSCondition()
  private var lanes: [Int64?: [WriteJob]] = [:]
  /// Lanes with jobs that no thread works on, the one that has waited longest first.
  private var ready: [Int64?] = []
  private var busy: Set<Int64?> = []
  private var count = 0
  private var isClosing = false
  private var running: Int

  /// The most jobs of one transaction: bounds how long others wait for the lock of the database.
  private static let mostJobs = 64

  init(_ connector: PostgresConnector, threads: Int) {
    running = threads
    for number in 0..<threads {
      let thread = Thread { [self] in run(PostgresWriter(connector)) }
      thread.name = "cairn.writer.\(number)"
      thread.stackSize = 4 << 20
      thread.start()
    }
  }

  func submit(_ job: WriteJob, in lane: Int64?) {
    condition.lock()
    guard !isClosing else {
      condition.unlock()
      return job.failed(StorageFailure("The store is closed", isTemporary: true))
    }
    count += 1
    if lanes[lane]?.append(job) == nil {
      lanes[lane] = [job]
      if !busy.contains(lane) { ready.append(lane) }
    }
    condition.signal()
    condition.unlock()
  }

  /// Jobs that wait or are under way.
  var queued: Int {
    condition.lock()
    defer { condition.unlock() }
    return count
  }

  /// Lets the waiting jobs finish, then ends the threads.
  func close() {
    condition.lock()
    isClosing = true
    condition.broadcast()
    while running > 0 { condition.wait() }
    condition.unlock()
  }

  private func run(_ writer: PostgresWriter) {
    while let (lane, jobs) = next() {
      writer.run(jobs)
      done(lane, jobs.count)
    }
    condition.lock()
    running -= 1
    condition.broadcast()
    condition.unlock()
  }

  private func next() -> (Int64?, [WriteJob])? {
    condition.lock()
    defer { condition.unlock() }
    while ready.isEmpty {
      if isClosing, busy.isEmpty { return nil }
      condition.wait()
    }
    let lane = ready.removeFirst()
    busy.insert(lane)
    let waiting = lanes[lane] ?? []
    let jobs = Array(waiting.prefix(Self.mostJobs))
    let left = waiting.dropFirst(jobs.count)
    lanes[lane] = left.isEmpty ? nil : Array(left)
    return (lane, jobs)
  }

  private func done(_ lane: Int64?, _ jobs: Int) {
    condition.lock()
    count -= jobs
    busy.remove(lane)
    if lanes[lane] != nil { ready.append(lane) }
    // At the end all threads look whether they may go.
    if isClosing { condition.broadcast() } else { condition.signal() }
    condition.unlock()
  }
}
