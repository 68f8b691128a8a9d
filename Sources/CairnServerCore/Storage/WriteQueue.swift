import Foundation

/// The thread that owns the writing connection. Jobs that wait when a commit ends share the next one: many small
/// requests cost one fsync.
final class WriteQueue: @unchecked Sendable {
  // `jobs`, `batchCount`, `isClosing` and `hasEnded` are guarded by `condition`; `session` is used by the thread alone.
  private let condition = NSCondition()
  private var jobs: [WriteJob] = []
  private var batchCount = 0
  private var isClosing = false
  private var hasEnded = false
  private var session: SQLiteSession?

  /// The most jobs of one transaction: bounds how long the first one waits.
  private static let mostJobs = 256

  init(_ session: SQLiteSession) {
    self.session = session
    let thread = Thread { [self] in run() }
    thread.name = "cairn.writer"
    thread.stackSize = 4 << 20
    thread.start()
  }

  /// Jobs that wait or are under way.
  var count: Int {
    condition.lock()
    defer { condition.unlock() }
    return jobs.count + batchCount
  }

  func submit(_ job: WriteJob) {
    condition.lock()
    guard !isClosing else {
      condition.unlock()
      return job.failed(StorageFailure("The store is closed", isTemporary: true))
    }
    jobs.append(job)
    condition.broadcast()
    condition.unlock()
  }

  /// Lets the waiting jobs finish, then closes the connection.
  func close() {
    condition.lock()
    isClosing = true
    condition.broadcast()
    while !hasEnded { condition.wait() }
    condition.unlock()
  }

  private func run() {
    while let batch = next() { session?.commit(batch) }
    session = nil
    condition.lock()
    hasEnded = true
    condition.broadcast()
    condition.unlock()
  }

  private func next() -> [WriteJob]? {
    condition.lock()
    defer { condition.unlock() }
    batchCount = 0
    while jobs.isEmpty {
      if isClosing { return nil }
      condition.wait()
    }
    let batch = Array(jobs.prefix(Self.mostJobs))
    jobs.removeFirst(batch.count)
    batchCount = batch.count
    return batch
  }
}
