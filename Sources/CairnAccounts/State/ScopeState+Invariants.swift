/// What always holds, checked in tests and in the randomized runs.
extension ScopeState {
  /// What is wrong; empty when nothing is.
  var violations: [String] {
    var result: [String] = []
    for id in accounts.keys where tombstones[id] != nil { result.append("\(id) is alive and has a tombstone") }
    for (slot, id) in choices where accounts[id] == nil { result.append("\(slot) shows \(id), which is not alive") }
    for (slot, entry) in contexts {
      if let server = entry.server, let local = entry.local, local <= server {
        result.append("\(slot) would send a choice that is not greater than the server's")
      }
      if let id = entry.local?.accountID, tombstones[id] != nil {
        result.append("\(slot) keeps a choice of \(id), which is deleted, to itself")
      }
      if entry.send.isPending && entry.local == nil { result.append("\(slot) is pending without a choice") }
    }
    for (id, entry) in accounts where entry.content.id != id { result.append("\(id) holds another account") }
    return result
  }
}
