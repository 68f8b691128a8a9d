import CairnRecords

/// References are judged on the state after the whole request, so order inside a request is free (web-services
/// section 5). An operation that fails may take others with it, so judging goes on until nothing more fails; each round
/// fails at least one operation.
extension ZoneModification {
  mutating func judgeReferences(_ reader: any StorageReader) throws {
    while try judgeOnce(reader) || judgeCircles(reader) {}
  }

  /// One round. Returns whether an operation failed that had not failed before.
  private mutating func judgeOnce(_ reader: any StorageReader) throws -> Bool {
    cascade = []
    let hasReferences = steps.contains { $0.isSave && !$0.references.isEmpty }
    let deletes = steps.indices.filter { steps[$0].isDelete }
    guard hasReferences || !deletes.isEmpty else { return false }
    var positions: [String: Int] = [:]
    for i in steps.indices where steps[i].failure == nil { positions[steps[i].name] = i }
    var gone = Set(deletes.map { steps[$0].name })
    var failed = false
    for i in deletes {
      if let error = try follow(steps[i].name, positions, &gone, reader) {
        steps[i].failure = error
        failed = true
      }
    }
    // A failed delete stays: whatever was judged by it is judged again.
    if failed { return true }
    guard hasReferences else { return false }
    var liveness: [String: Bool] = [:]
    let targets = steps.flatMap { $0.isSave ? $0.references.filter { $0.kind != .deleteSelf }.map(\.target) : [] }
    try reader.prefetch(zone.key, named: targets.filter { positions[$0] == nil }, referrersOf: [])
    var referrers: [String: Int] = [:]
    for i in steps.indices where steps[i].isSave {
      if let error = try check(i, positions, gone, &liveness, &referrers, reader) {
        steps[i].failure = error
        failed = true
      }
    }
    return failed
  }

  /// Collects what goes with a deleted record, or says what keeps it.
  private mutating func follow(
    _ name: String, _ positions: [String: Int], _ gone: inout Set<String>, _ reader: any StorageReader
  ) throws -> CloudError? {
    var queue = [name]
    while let target = queue.popLast() {
      for reference in try reader.referrers(zone.key, of: target, limit: .max) {
        // What this request says about the referrer counts, not what was stored before it.
        if gone.contains(reference.source) || positions[reference.source] != nil { continue }
        guard reference.kind == .deleteSelf else {
          guard try zone.shows(reference.source, reader) else {
            return CloudError(
              .validatingReferenceError, "Record '\(name)' cannot be deleted: a record that is not shared refers to it")
          }
          return CloudError(
            .validatingReferenceError,
            "Record '\(name)' cannot be deleted: field '\(reference.field)' of record '\(reference.source)' refers to "
              + (target == name ? "it" : "'\(target)'"))
        }
        guard let row = try reader.record(zone.key, named: reference.source), row.isLive else { continue }
        if let error = try refusal(ofDeleting: row, reader) { return error }
        gone.insert(row.name)
        cascade.append(row)
        queue.append(row.name)
      }
    }
    return nil
  }

  private func check(
    _ i: Int, _ positions: [String: Int], _ gone: Set<String>, _ liveness: inout [String: Bool],
    _ referrers: inout [String: Int], _ reader: any StorageReader
  ) throws -> CloudError? {
    for reference in steps[i].references {
      let target = reference.target
      if reference.isOfShare {
        if let error = try judgeRoot(i, positions, gone, reader) { return error }
      }
      if gone.contains(target) { return missing(reference) }
      if try isHidden(reference, positions, reader) { return missing(reference) }
      if reference.kind == .deleteSelf {
        let count = try referrers[target] ?? reader.deleteSelfReferrerCount(zone.key, of: target)
        let isNew = steps[i].live == nil
        guard count < server.settings.deleteSelfReferrers || !isNew else {
          return CloudError(
            .badRequest,
            "Field '\(reference.field)': more than \(server.settings.deleteSelfReferrers) DELETE_SELF references to "
              + "record '\(target)'")
        }
        referrers[target] = isNew ? count + 1 : count
        continue
      }
      if let position = positions[target], steps[position].isSave { continue }
      let isLive = try liveness[target] ?? (reader.record(zone.key, named: target)?.isLive ?? false)
      liveness[target] = isLive
      if !isLive { return missing(reference) }
    }
    return nil
  }

  private func missing(_ reference: StoredReference) -> CloudError {
    CloudError(
      .validatingReferenceError,
      "Field '\(reference.field)' of record '\(reference.source)' refers to '\(reference.target)', which does not exist"
    )
  }
}
