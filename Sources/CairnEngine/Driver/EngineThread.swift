import Foundation

/// The one thread that an engine works on: never one of Swift's cooperative pool, which blocking calls would starve.
///
/// Jobs run in the order in which they were added. Between jobs the thread asks `idle` what is due, and sleeps until
/// then or until something is added.
final class EngineThread: Sendable {
  typealias Job = @Sendable () -> Void

  private let condition = NSCondition()
  private let state: State

  /// Guarded by `condition`.
  private final class State: @unchecked Sendable {
    // Every access is made with the condition locked.
    var jobs: [Job] = []
    var isClosed = false
    var isWoken = false
  }

  /// - Parameter idle: called on the thread when no job waits; does what is due, and returns the milliseconds to sleep,
  ///   or nil to sleep until something is added.
  init(name: String, idle: @escaping @Sendable () -> Int64?) {
    let state = State()
    self.state = state
    let condition = condition
    let thread = Thread { EngineThread.run(condition, state, idle) }
    thread.name = name
    thread.start()
  }

  /// Adds a job. False when the thread is closed: the job will not run.
  func add(_ job: @escaping Job) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !state.isClosed else { return false }
    state.jobs.append(job)
    condition.signal()
    return true
  }

  /// Lets the thread ask again what is due.
  func wake() {
    condition.lock()
    state.isWoken = true
    condition.signal()
    condition.unlock()
  }

  /// Ends the thread after the jobs that wait.
  func close() {
    condition.lock()
    state.isClosed = true
    condition.signal()
    condition.unlock()
  }

  private static func run(_ condition: NSCondition, _ state: State, _ idle: () -> Int64?) {
    while true {
      condition.lock()
      state.isWoken = false
      let job = state.jobs.isEmpty ? nil : state.jobs.removeFirst()
      let isClosed = state.isClosed
      condition.unlock()
      if let job {
        job()
        continue
      }
      if isClosed { return }
      let wait = idle()
      condition.lock()
      if state.jobs.isEmpty && !state.isClosed && !state.isWoken {
        if let wait {
          if wait > 0 { _ = condition.wait(until: Date(timeIntervalSinceNow: Double(wait) / 1_000)) }
        } else {
          condition.wait()
        }
      }
      condition.unlock()
    }
  }
}
