import CairnEngine
import CairnRecords
import CairnTesting
import StoreSupport
import Testing

@testable import CairnServerCore

/// One server in memory or on the store that ``EveryStore`` says, an owner with a zone, and others; short words for
/// what they do.
struct ShareWorld {
  /// Goes after the server.
  let store: TestStore
  let clock = ManualClock()
  let server: InMemoryServer
  let anna: Caller
  let ben: Caller
  let cleo: Caller
  var core: CloudServer { server.core }
  var storage: any Storage { server.core.storage }
  var users: UserDirectory { UserDirectory(storage: storage, clock: clock) }

  static let own = DatabaseScope(container: "iCloud.cairn")
  static let shared = DatabaseScope(container: "iCloud.cairn", kind: .shared)
  static let open = DatabaseScope(container: "iCloud.cairn", kind: .public)

  init(settings: ServerSettings = ServerSettings()) throws {
    store = try TestStore(EveryStore.kind)
    server = try InMemoryServer(storage: try store.open(), clock: clock, settings: settings)
    anna = try server.caller("anna")
    ben = try server.caller("ben")
    cleo = try server.caller("cleo")
    try makeZone("Notes")
  }

  func makeZone(_ name: String) throws {
    _ = try core.modifyZones(anna, ShareWorld.own, [.create(ZoneID(name: name))])
  }

  /// Anna's zone as `who` names it.
  func zone(_ who: Caller, _ name: String = "Notes") -> ZoneID {
    who == anna ? ZoneID(name: name) : ZoneID(name: name, owner: anna.recordName)
  }

  func scope(_ who: Caller) -> DatabaseScope { who == anna ? ShareWorld.own : ShareWorld.shared }

  func record(
    _ who: Caller, _ name: String, parent: String? = nil, type: String = "Note", _ fields: Fields = [:],
    tag: ChangeTag? = nil, zone: String = "Notes"
  ) -> Record {
    Record(
      id: RecordID(name: name, zone: self.zone(who, zone)), type: type, changeTag: tag, fields: fields, parent: parent)
  }

  @discardableResult
  func modify(_ who: Caller, _ operations: [RecordOperation], atomic: Bool = false) throws -> [OperationOutcome] {
    let request = Modification(operations: operations.map { IncomingOperation($0) }, atomic: atomic)
    return try core.modify(who, scope(who), request).outcomes
  }

  @discardableResult
  func save(
    _ who: Caller, _ name: String, parent: String? = nil, _ fields: Fields = [:],
    kind: RecordOperation.Kind = .forceUpdate,
    zone: String = "Notes"
  ) throws -> OperationOutcome {
    try modify(who, [RecordOperation(kind, record(who, name, parent: parent, fields, zone: zone))])[0]
  }

  @discardableResult
  func delete(_ who: Caller, _ name: String, zone: String = "Notes") throws -> OperationOutcome {
    try modify(who, [RecordOperation(.forceDelete, record(who, name, zone: zone))])[0]
  }

  func invitation(_ who: Caller, _ permission: SharePermission = .readWrite) -> ShareParticipant {
    ShareParticipant(UserIdentity(lookup: .userRecordName(who.recordName)), permission: permission)
  }

  func shareRecord(
    _ who: Caller, _ name: String, of root: String?, open: SharePermission? = nil, _ participants: [ShareParticipant]?,
    zone: String = "Notes"
  ) -> Record {
    var share = record(who, name, type: "cloudkit.share", zone: zone)
    var sharing = RecordSharing()
    sharing.root = root.map { RecordSharing.Root(name: $0) }
    sharing.publicPermission = open
    sharing.participants = participants
    share.sharing = sharing
    return share
  }

  /// Shares a root of Anna's as share `S-ROOT`, or changes its share. Returns the short GUID.
  @discardableResult
  func share(
    _ root: String, open: SharePermission? = nil, with participants: [ShareParticipant]? = nil, zone: String = "Notes"
  ) throws -> String {
    let record = shareRecord(anna, "S-" + root, of: root, open: open, participants, zone: zone)
    let saved = try modify(anna, [RecordOperation(.forceUpdate, record)])[0].saved()
    return try #require(saved.sharing?.shortGUID)
  }

  @discardableResult
  func accept(_ who: Caller, _ guid: String) throws -> ResolvedShare {
    try core.acceptShares(who, ShareWorld.open, [ShareQuery(guid: guid)])[0].get()
  }

  /// Shares a root with everybody named, who all accept.
  @discardableResult
  func share(_ root: String, accepted: [(Caller, SharePermission)], zone: String = "Notes") throws -> String {
    let guid = try share(root, with: accepted.map { invitation($0.0, $0.1) }, zone: zone)
    for (who, _) in accepted { try accept(who, guid) }
    return guid
  }

  func stored(_ who: Caller, _ name: String, zone: String = "Notes") throws -> Record? {
    let found = try core.lookup(who, scope(who), in: self.zone(who, zone), [LookupItem(name: name)]).records[0]
    switch found {
    case .success(let record): return record
    case .failure(let error) where error.code == .notFound || error.code == .zoneNotFound: return nil
    case .failure(let error): throw error
    }
  }

  struct Feed {
    var records: [String] = []
    var deletions: [String] = []
    var token: ChangeToken
  }

  /// All pages of the zone after `token`.
  @discardableResult
  func feed(
    _ who: Caller, since token: ChangeToken? = nil, size: Int? = nil, zone: String = "Notes"
  ) throws -> Feed {
    var feed = Feed(token: ChangeToken(""))
    var token = token
    while true {
      var request = ZoneFeedQuery(zone: self.zone(who, zone), token: token)
      request.resultsLimit = size
      let page = try core.changes(who, scope(who), [request])[0].get()
      for entry in page.entries {
        switch entry {
        case .record(let record): feed.records.append(record.id.name)
        case .tombstone(let end): feed.deletions.append(end.id.name)
        }
      }
      token = page.token
      feed.token = page.token
      if !page.moreComing { return feed }
    }
  }

  /// The shared database's feed: zones with `-` in front where they are gone.
  func zones(_ who: Caller, since token: ChangeToken? = nil) throws -> (zones: [String], token: ChangeToken) {
    let page = try core.databaseChanges(who, ShareWorld.shared, since: token)
    return (page.zones.map { ($0.isDeleted ? "-" : "") + $0.id.name }, page.token)
  }

  /// What storage must keep to, whatever has happened: each share's feed holds exactly its records.
  func checkInvariants() throws {
    try storage.read { reader in
      guard let database = try reader.database(anna.key, ShareWorld.own) else { return }
      for zone in try reader.zones(database.key, after: -1, limit: .max) where !zone.isDeleted {
        var rows: [String: StoredRecord] = [:]
        try reader.scan(zone.key, after: 0, before: .max, newestFirst: false) {
          rows[$0.name] = $0
          return true
        }
        for share in try reader.shares(.inZone(zone.key)) where share.name != nil {
          var expected = Set<String>(rows.values.filter { $0.isLive && $0.name == share.name }.map(\.name))
          for row in rows.values where row.isLive {
            var next: String? = row.name
            while let name = next, name != share.root { next = rows[name]?.parent }
            if next != nil { expected.insert(row.name) }
          }
          let entries = try reader.shareEntries(of: share.key, after: 0, limit: .max)
          #expect(Set(entries.filter { $0.left == nil }.map(\.name)) == expected, "share of \(share.root)")
          for entry in entries where entry.left == nil {
            #expect(entry.position >= (rows[entry.name]?.position ?? .max), "entry \(entry.name)")
          }
          #expect(share.position == entries.last?.position ?? 0)
        }
      }
    }
  }
}
