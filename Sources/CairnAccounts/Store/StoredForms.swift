import CairnRecords

/// How the values of a state stand in rows. Records are kept as the text that also travels, so that fields that this
/// release does not know survive (accounts.md A6).
struct StoredAccount: Codable {
  var record: String
  var send: SendState
  var isPendingCredential: Bool

  init(_ entry: AccountEntry) {
    record = StateRows.text(AccountRecordCodec.account(entry.content, nil, in: StateRows.zone))
    send = entry.send
    isPendingCredential = entry.isPendingCredential
  }

  func entry(_ key: String) throws -> AccountEntry {
    guard case .account(let content) = AccountRecordCodec.read(try StateRows.record(record, key)) else {
      throw StateRows.Failure.unreadable(key)
    }
    return AccountEntry(content: content, send: send, isPendingCredential: isPendingCredential)
  }
}

struct StoredValue: Codable {
  var account: String?
  var time: Int64
  var writer: String

  init?(_ value: RegisterValue?) {
    guard let value else { return nil }
    account = value.accountID?.rawValue
    time = value.stamp.time
    writer = value.stamp.writer
  }

  var value: RegisterValue {
    RegisterValue(accountID: account.flatMap { AccountID($0) }, stamp: Stamp(time: time, writer: writer))
  }
}

struct StoredContext: Codable {
  var server: StoredValue?
  var local: StoredValue?
  var newestTime: Int64
  var send: SendState

  init(_ entry: ContextEntry) {
    server = StoredValue(entry.server)
    local = StoredValue(entry.local)
    newestTime = entry.newestTime
    send = entry.send
  }

  var entry: ContextEntry {
    ContextEntry(server: server?.value, local: local?.value, newestTime: newestTime, send: send)
  }
}

struct StoredItem: Codable {
  var name: String
  var record: String?
  var isSealed: Bool
  var isOfLostZone: Bool?

  init(_ item: StagedItem) {
    name = item.name
    isOfLostZone = item.isOfLostZone ? true : nil
    record = item.record.map { StateRows.text($0) }
    isSealed = item.isSealed
  }

  func item(_ key: String) throws -> StagedItem {
    StagedItem(
      name: name, record: try record.map { try StateRows.record($0, key) }, isSealed: isSealed,
      isOfLostZone: isOfLostZone ?? false)
  }
}

struct StoredParked: Codable {
  var record: String
  var reason: UnreadableReason
  var since: Int64

  init(_ parked: ParkedRecord) {
    record = StateRows.text(parked.record)
    reason = parked.reason
    since = parked.since
  }

  func parked(_ key: String) throws -> ParkedRecord {
    ParkedRecord(record: try StateRows.record(record, key), reason: reason, since: since)
  }
}
