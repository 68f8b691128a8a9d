import Cairn
import CairnEngine
import CairnRecords
import CairnTables

/// How a sync ended, in the contract's words and exit codes (tables section 7).
struct SyncEnding {
  let report: SyncReport

  init(_ report: SyncReport) { self.report = report }

  var json: JSONValue {
    [
      "saved": .integer(Int64(report.counts.saved)), "deleted": .integer(Int64(report.counts.deleted)),
      "fetched": .integer(Int64(report.counts.fetched)), "removed": .integer(Int64(report.counts.removed)),
      "conflicts": .integer(Int64(report.counts.conflicts)), "parked": .integer(Int64(report.parked)),
      "pending": .integer(Int64(report.pending)), "quiet": .bool(report.quiet), "state": .string(state),
    ]
  }

  var state: String { report.state }

  var text: String {
    let counts = report.counts
    var parts: [String] = []
    func add(_ count: Int, _ what: String) { if count > 0 { parts.append("\(what) \(count)") } }
    add(counts.saved, "saved")
    add(counts.deleted, "deleted")
    add(counts.fetched, "fetched")
    add(counts.removed, "removed")
    add(counts.conflicts, "merged")
    // After a failure, that nothing was done says nothing: the error follows.
    if parts.isEmpty && error != nil { return "" }
    var text = parts.isEmpty ? "nothing to do" : parts.joined(separator: ", ")
    if report.pending > 0 { text += "; \(report.pending) still pending (cairn status says why)" }
    if report.parked > 0 { text += "; \(report.parked) parked (cairn parked says why)" }
    if let question = report.result.questions.first {
      text +=
        "\nthe zone \(question.zone.name) is gone from the server: answer with cairn decide DB keepLocal, deleteLocal or recreateAndReupload"
    }
    return text
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
        remedy: "give the owner's token with cairn init --token")
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
    case .decision: .attention
    default: report.parked > 0 || report.waiting > 0 || report.needsSchemaRepair ? .attention : .done
    }
  }
}
