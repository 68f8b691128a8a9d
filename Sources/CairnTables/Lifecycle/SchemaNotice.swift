import CairnEngine
import CairnRecords
import CairnSQLite

/// Which tables' schemas have changed here and are to be published (tables 1.4): so that a device that joins later
/// makes them as they are now.
struct SchemaNotice {
  private static let seen = "sql/"
  private static let due = "publish/"

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// Notes a table whose statements are others than when they were last looked at. Where they were never looked at,
  /// only a new table counts: the others were published when the file was prepared.
  func note(_ plan: TablePlan, _ schema: DatabaseSchema, isNew: Bool, at time: FieldClock) throws {
    guard let table = schema.table(plan.name) else { return }
    let text = ([table.sql] + table.indexes.compactMap(\.sql)).joined(separator: ";\n")
    let before = try file.settings.get(Self.seen + String(plan.number))
    guard before != text else { return }
    try file.settings.set(Self.seen + String(plan.number), text)
    if before != nil || isNew { try file.settings.set(Self.due + String(plan.number), String(time)) }
  }

  /// Times of the changes that are not published yet, by table number.
  func pending() throws -> [Int: FieldClock] {
    var times: [Int: FieldClock] = [:]
    for (key, text) in try file.settings.all(prefix: Self.due) {
      if let number = Int(key.dropFirst(Self.due.count)), let time = FieldClock(text) { times[number] = time }
    }
    return times
  }

  func done(_ published: [Int: FieldClock]) throws {
    try file.transaction {
      for number in published.keys { try file.settings.set(Self.due + String(number), nil) }
    }
  }
}

extension SyncedDatabase {
  /// Publishes schemas that have changed here since the last time; asks nothing where none has.
  ///
  /// To be called after a sync that worked: then the server, the user and the zone are the right ones.
  public func publishSchema(_ cloud: any CloudDatabase) throws {
    let notice = SchemaNotice(file)
    let pending = try notice.pending()
    if pending.isEmpty { return }
    try SchemaPublisher(cloud: cloud, file: file).publish(clock: file.clock.wallClock, only: pending)
    try notice.done(pending)
  }
}
