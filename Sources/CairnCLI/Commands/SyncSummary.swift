/// What a sync of any category did, in the contract's words (DESIGN section 7).
struct SyncSummary {
  var saved: Int
  var deleted: Int
  var fetched: Int
  var removed: Int
  var conflicts: Int
  var parked: Int
  var pending: Int
  var quiet: Bool
  var state: String

  var json: JSONValue {
    [
      "saved": JSONValue(saved), "deleted": JSONValue(deleted), "fetched": JSONValue(fetched),
      "removed": JSONValue(removed), "conflicts": JSONValue(conflicts), "parked": JSONValue(parked),
      "pending": JSONValue(pending), "quiet": .bool(quiet), "state": .string(state),
    ]
  }

  /// One line for people; empty where nothing was done and an error follows, which says more.
  ///
  /// - Parameters:
  ///   - pendingHint, parkedHint: the commands that say why something waits; nil where none does.
  func text(hasFailed: Bool, pendingHint: String, parkedHint: String? = nil) -> String {
    let parts = [
      (saved, "saved"), (deleted, "deleted"), (fetched, "fetched"), (removed, "removed"), (conflicts, "merged"),
    ].filter { $0.0 > 0 }.map { "\($0.1) \($0.0)" }
    if parts.isEmpty && hasFailed { return "" }
    var text = parts.isEmpty ? (pending > 0 ? "nothing done" : "nothing to do") : parts.joined(separator: ", ")
    if pending > 0 { text += "; \(pending) still pending (\(pendingHint) says why)" }
    if parked > 0 { text += "; \(parked) parked" + (parkedHint.map { " (\($0) says why)" } ?? "") }
    return text
  }
}
