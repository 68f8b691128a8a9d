/// Checked by tests and the simulation after every step.
extension SyncStateMachine {
  /// What of the invariants does not hold (docs/internals/engine.md); empty when all is well.
  public func brokenInvariants() -> [String] {
    var broken = pending.zones.brokenInvariants() + pending.records.brokenInvariants()
    let performs = effects.filter { if case .perform = $0 { true } else { false } }
    let finishes = effects.filter { if case .finish = $0 { true } else { false } }
    if performs.count + finishes.count > 1 { broken.append("a step asks more than one thing") }
    if let last = effects.last, !performs.isEmpty, last != performs.first {
      broken.append("a task is not the last effect")
    }
    guard let run else {
      if pending.zones.inFlight > 0 && hasRecovered { broken.append("zones are in flight while no call runs") }
      return broken
    }
    if run.current == nil { broken.append("a call runs without a task") }
    if run.fetch != nil && run.send != nil { broken.append("a zone is fetched while a batch is out") }
    if run.fetch != nil && !run.isFetchOpen { broken.append("a zone is fetched outside a fetch") }
    if run.send != nil && !run.isSendOpen { broken.append("a batch is out outside a send") }
    return broken
  }
}
