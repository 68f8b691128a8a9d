import Cairn
import CairnEngine
import CairnRecords
import CairnTables
import Foundation

/// How a sync ended, in the contract's words and exit codes (tables section 7).
struct SyncEnding {
  let report: SyncReport

  init(_ report: SyncReport) { self.report = report }

  private var summary: SyncSummary {
    let counts = report.counts
    return SyncSummary(
      saved: counts.saved, deleted: counts.deleted, fetched: counts.fetched, removed: counts.removed,
      conflicts: counts.conflicts, parked: report.parked, pending: report.pending, quiet: report.quiet,
      state: report.state)
  }

  var json: JSONValue { summary.json }

  var state: String { report.state }

  var text: String {
    var text = summary.text(hasFailed: error != nil, pendingHint: "cairn status", parkedHint: "cairn parked")
    if text.isEmpty { return text }
    if let question = report.result.questions.first {
      text += "\n\(Self.reason(question)): answer with cairn decide DB keepLocal, deleteLocal or recreateAndReupload"
    }
    if let wait { text += "\n\(wait)" }
    return text
  }

  /// Why a paused sync did not go on, and when it will.
  private var wait: String? {
    guard case .paused(.throttled) = report.result.condition else { return nil }
    switch report.result.failure {
    case .rateLimited(let until)?, .backingOff(let until)?:
      let seconds = (until - Int64(Date().timeIntervalSince1970 * 1_000) + 999) / 1_000
      let time = seconds > 1 ? "in \(seconds) seconds" : "in a moment"
      return "the server can't answer now: nothing is lost, run the command again \(time)"
    case .cloud(let error)?:
      return "the server can't answer now (\(error.reason)): nothing is lost, run the command again in a moment"
    default: return nil
    }
  }

  private static func reason(_ question: ZoneQuestion) -> String {
    switch question.cause {
    case .deleted, .purged: "the zone \(question.zone.name) was deleted on the server"
    case .incarnation: "the zone \(question.zone.name) was deleted on the server, and made again"
    case .epoch: "the server was restored from a backup and may lack rows that are here"
    }
  }

  /// The failure to print and end with; nil when the sync did what it could.
  var error: CommandError? {
    switch report.result.failure {
    case nil, .rateLimited?, .backingOff?: return nil
    case .cloud(let error)?:
      switch report.result.condition {
      case .decision, .paused: return nil
      default: return CommandError(describing: error)
      }
    case .anotherUser?:
      return CommandError(
        .failed, "the token belongs to another user than this file",
        remedy: "give the owner's token with cairn init --token, or make the file this user's with cairn init --mode")
    case .store(let text)?:
      return CommandError(
        .failed, "the file could not be used (\(text))", remedy: "nothing is lost; check the disk and run cairn doctor")
    case .noAccount?, .unresolvedAccount?:
      return CommandError(.failed, "nobody is signed in", remedy: "give a token with cairn init --token")
    case .reentrantCall?, .cancelled?, .replaced?:
      return CommandError(.failed, "interrupted", remedy: "nothing is lost, run the command again")
    }
  }

  var exitCode: ExitCode {
    switch report.result.condition {
    case .signedOut: .failed
    case .offline: .unreachable
    // Paused: not all was done, also where nothing could be sent yet.
    case .decision, .paused: .attention
    default: report.parked > 0 || report.waiting > 0 || report.needsSchemaRepair ? .attention : .done
    }
  }
}
