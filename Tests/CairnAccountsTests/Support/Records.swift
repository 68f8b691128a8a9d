import CairnRecords

@testable import CairnAccounts

/// Records as other devices would have written them.
enum Make {
  static let zone = TestWorld.zone

  static func id(_ number: Int) -> AccountID { AccountID("10000000-0000-4000-8000-" + padded(number))! }
  static func instance(_ number: Int) -> InstanceID { InstanceID("00000000-0000-4000-8000-" + padded(number))! }

  private static func padded(_ number: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: 12 - text.count) + text
  }

  static func account(
    _ id: AccountID, label: String? = nil, time: Int64 = 1_000, writer: String = "w", user: String = "ada",
    instance: InstanceID = TestDevice.instance
  ) -> Record {
    var content = AccountContent(id: id, fields: [:])
    let stamp = Stamp(time: time, writer: writer)
    content.set("instanceID", .string(instance.rawValue), .zero)
    content.set("service", .string("mastodon"), .zero)
    content.set("instanceURL", .string("https://x.example"), Stamp(time: 1, writer: "w"))
    content.set("userName", .string(user), Stamp(time: 1, writer: "w"))
    content.set("position", .double(0), Stamp(time: 1, writer: "w"))
    if let label { content.set("label", .string(label), stamp) }
    return AccountRecordCodec.account(content, nil, in: zone)
  }

  static func tombstone(_ id: AccountID) -> Record { AccountRecordCodec.tombstone(id, nil, in: zone) }
  static func marker(_ id: InstanceID) -> Record { AccountRecordCodec.marker(id, nil, in: zone) }

  static func context(_ id: AccountID?, time: Int64 = 1_000, writer: String = "w", slot: ContextSlot = .main) -> Record
  {
    AccountRecordCodec.context(
      slot, RegisterValue(accountID: id, stamp: Stamp(time: time, writer: writer)), nil, in: zone)
  }
}
