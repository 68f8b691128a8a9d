import CairnServerCore
import Foundation

/// One thread's connection for writing: runs jobs in a transaction, and again after what passes. Confined to its
/// thread.
///
/// A commit whose answer was lost may have happened, so it is not run again: its jobs fail as temporary, and clients
/// find out with their next request.
final class PostgresWriter {
  private let connector: PostgresConnector
  private var connection: PostgresConnection?

  /// How often a transaction is tried that others keep getting in the way of.
  private static let mostConflicts = 20
  /// For how long a server that is away is waited for, in seconds. Clients try again by themselves.
  private static let patience: TimeInterval = 5

  init(_ connector: PostgresConnector) { self.connector = connector }

  /// A job failed after it had changed the store: what the others did goes with it.
  private struct Spoiled: Error {
    var cause: any Error
  }

  func run(_ jobs: [WriteJob]) {
    var conflicts = 0
    let start = Date()
    while true {
      do {
        for report in try attempt(jobs) { report() }
        return
      } catch let error as Spoiled {
        connection?.rollBack()
        if jobs.count == 1 { return jobs[0].failed(PostgresError.failure(error.cause)) }
        return runAlone(jobs)
      } catch let error as PostgresError {
        connection?.rollBack()
        if connection?.isBroken != false || error.isConnectionLoss { connection = nil }
        if error.isInDoubt { return fail(jobs, error) }
        if error.isConnectionLoss, !error.isRefusal, Date().timeIntervalSince(start) < Self.patience {
          // The server is being started again, perhaps.
          pause(milliseconds: 50...150)
        } else if error.isConflict, conflicts < Self.mostConflicts {
          conflicts += 1
          // Somebody else is at the same rows: not both again at the same moment.
          pause(milliseconds: 0...min(200, 4 << min(conflicts, 6)))
        } else if jobs.count > 1, !error.isConnectionLoss {
          return runAlone(jobs)
        } else {
          return fail(jobs, error)
        }
      } catch {
        connection?.rollBack()
        return fail(jobs, error)
      }
    }
  }

  private func runAlone(_ jobs: [WriteJob]) {
    for job in jobs { run([job]) }
  }

  private func fail(_ jobs: [WriteJob], _ error: any Error) {
    for job in jobs { job.failed(PostgresError.failure(error)) }
  }

  private func pause(milliseconds range: ClosedRange<Int>) {
    Thread.sleep(forTimeInterval: Double(Int.random(in: range)) / 1_000)
  }

  /// Runs the jobs in one transaction. A job that fails before it has changed the store leaves the others alone.
  private func attempt(_ jobs: [WriteJob]) throws -> [@Sendable () -> Void] {
    if connection?.isAlive() == false { connection = nil }
    let connection = try self.connection ?? connector.connect()
    self.connection = connection
    let session = PostgresSession(connection, isWriter: true)
    try session.begin()
    var reports: [@Sendable () -> Void] = []
    for job in jobs {
      let (work, writes) = (session.work, session.directWrites)
      do {
        reports.append(try job.body(session))
      } catch let error as PostgresError {
        throw error
      } catch {
        guard session.directWrites == writes else { throw Spoiled(cause: error) }
        session.work = work
        let failed = job.failed
        let failure = PostgresError.failure(error)
        reports.append({ failed(failure) })
      }
    }
    try session.commit()
    return reports
  }
}
