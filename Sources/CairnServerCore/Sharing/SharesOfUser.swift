import CairnRecords

/// What happens to shares when a zone or a user goes.
enum SharesOfUser {
  /// Ends all shares of a zone, before it is deleted.
  ///
  /// - Returns: by user, in whose shared database the zone ends.
  @discardableResult
  static func end(
    inZone zone: Int64, now: Int64, _ writer: any StorageWriter, newIncarnation: @escaping () -> Int64
  ) throws -> [Int64: Set<String>] {
    let shares = try writer.shares(.inZone(zone))
    guard !shares.isEmpty, let place = try writer.place(ofZone: zone), let owner = try writer.user(key: place.user)
    else { return [:] }
    var keeper = ShareKeeper(writer, place, owner: owner, now: now, newIncarnation: newIncarnation)
    for share in shares { try keeper.end(share) }
    return try keeper.finish()
  }

  /// Ends all shares of a user who is to be removed, and takes that user out of those of others.
  static func end(
    of user: Caller, now: Int64, _ writer: any StorageWriter, newIncarnation: @escaping () -> Int64
  ) throws {
    for part in try writer.participations(of: user.key) {
      guard let place = try writer.place(ofZone: part.share.zone), let owner = try writer.user(key: place.user) else {
        continue
      }
      // As it is now that its place is fixed.
      guard let share = try writer.shares(.key(part.share.key)).first else { continue }
      var keeper = ShareKeeper(writer, place, owner: owner, now: now, newIncarnation: newIncarnation)
      if let row = try keeper.leave(share, user.key) { try keeper.recordsChanged([row]) }
      _ = try keeper.finish()
    }
    for zone in try writer.sharedZones(of: user.key) {
      try end(inZone: zone, now: now, writer, newIncarnation: newIncarnation)
    }
  }
}
