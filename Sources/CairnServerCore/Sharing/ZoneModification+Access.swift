import CairnRecords

/// What a participant may write in a zone of another user's (web-services section 12): records of the hierarchies that
/// are shared with permission to write. Nothing here concerns a zone of the caller's own.
extension ZoneModification {
  /// Before anything else is told about the record.
  func judgeAccess(_ step: Step, _ reader: any StorageReader) throws {
    guard let view = zone.view else { return }
    guard let live = step.live else {
      if !step.kind.isDelete, step.incoming.operation.record.type.isShareType {
        throw CloudError(.accessDenied, "Only the owner of a zone shares what is in it")
      }
      return
    }
    guard let permission = try view.permission(of: step.name, zone.key, reader) else {
      throw CloudError(.accessDenied, "Record '\(step.name)' is not shared with the caller")
    }
    if live.type == RecordSharing.shareType {
      let isAdministrator = view.part(inShareNamed: step.name)?.participant.kind == .administrator
      guard isAdministrator || step.kind.isDelete else {
        throw CloudError(.accessDenied, "Only the owner and administrators change a share")
      }
      return
    }
    guard permission == .readWrite else {
      throw CloudError(.accessDenied, "Record '\(step.name)' is shared READ_ONLY")
    }
    if step.kind.isDelete, view.part(inShareOf: step.name) != nil {
      throw CloudError(.accessDenied, "Only the owner deletes the root of a share")
    }
  }

  /// A participant who deletes a share leaves it.
  func judgeLeaving(_ step: Step) throws {
    guard let view = zone.view, step.kind.isDelete, step.live?.type == RecordSharing.shareType else { return }
    step.leaves = view.part(inShareNamed: step.name)?.share
    step.isNothing = true
  }

  /// A save must leave the record below a root with permission to write.
  func judgeSharedParents(_ reader: any StorageReader) throws {
    guard let view = zone.view else { return }
    var byName: [String: Step] = [:]
    for step in steps where step.isSave { byName[step.name] = step }
    var known: [String: Bool] = [:]
    for step in steps where step.isSave && step.type != RecordSharing.shareType {
      if let part = view.part(inShareOf: step.name) {
        // Below another root of the caller's, or of one that only the owner sees.
        known[step.name] = part.permission == .readWrite
        if step.parent != step.live?.parent {
          step.failure = CloudError(.accessDenied, "Only the owner moves the root of a share")
        }
        continue
      }
      guard let parent = step.parent, try isWritable(parent, view, byName, &known, reader) else {
        step.failure = CloudError(
          .accessDenied, "Record '\(step.name)' needs a parent that is shared with permission to write")
        continue
      }
    }
  }

  private func isWritable(
    _ name: String, _ view: ShareView, _ steps: [String: Step], _ known: inout [String: Bool],
    _ reader: any StorageReader
  ) throws -> Bool {
    var path: [String] = []
    var seen = Set<String>()
    var next: String? = name
    var result = false
    while let current = next, seen.insert(current).inserted {
      if let found = known[current] {
        result = found
        break
      }
      path.append(current)
      guard let step = steps[current], step.isSave, view.part(inShareOf: current) == nil else {
        // What only moves with others stays below a root that the caller may write to.
        let isShare = view.part(inShareNamed: current) != nil
        result = try !isShare && view.permission(of: current, zone.key, reader) == .readWrite
        break
      }
      next = step.parent
    }
    for name in path { known[name] = result }
    return result
  }

  /// Why a record may not go along with its target; nil when it may.
  func refusal(ofDeleting row: StoredRecord, _ reader: any StorageReader) throws -> CloudError? {
    guard let view = zone.view else { return nil }
    guard !row.isShared, try view.permission(of: row.name, zone.key, reader) == .readWrite else {
      return CloudError(.accessDenied, "A record would be deleted along that the caller may not delete")
    }
    return nil
  }

  /// Whether a reference is to a record that the caller doesn't see, unless the stored record has it already.
  func isHidden(
    _ reference: StoredReference, _ positions: [String: Int], _ reader: any StorageReader
  ) throws -> Bool {
    guard zone.view != nil, reference.kind != .parent, positions[reference.target] == nil,
      try !zone.shows(reference.target, reader)
    else { return false }
    return try !reader.referrers(zone.key, of: reference.target, limit: .max).contains(reference)
  }

  // MARK: Parents

  /// Fails saves by which a record would be its own ancestor. Only a record that is there already, or whose parent
  /// comes with the same request, can be. Returns whether one failed.
  func judgeCircles(_ reader: any StorageReader) throws -> Bool {
    let names = Set(steps.lazy.filter { $0.isSave && $0.parent != nil }.map(\.name))
    guard !names.isEmpty else { return false }
    var byName: [String: Step] = [:]
    for step in steps where step.isSave { byName[step.name] = step }
    var isRound = false
    var done = Set<String>()
    for step in steps where step.isSave {
      guard let parent = step.parent, step.live.map({ $0.parent != parent }) ?? names.contains(parent) else { continue }
      var next: String? = parent
      var path = Set<String>()
      while let current = next, !done.contains(current), path.insert(current).inserted {
        guard current != step.name else {
          step.failure = CloudError(.badRequest, "Record '\(step.name)' would be its own ancestor")
          byName[step.name] = nil
          isRound = true
          break
        }
        next = try byName[current].map { $0.parent } ?? reader.record(zone.key, named: current)?.parent
      }
      if step.failure == nil { done.formUnion(path) }
    }
    return isRound
  }
}

extension String {
  /// Whether a record of this type is a share, in any case (web-services section 12).
  var isShareType: Bool {
    utf8.count == RecordSharing.shareType.utf8.count && lowercased() == RecordSharing.shareType
  }
}
