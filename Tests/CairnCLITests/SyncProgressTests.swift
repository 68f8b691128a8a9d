import CairnRecords
import Testing

@testable import CairnCLI
@testable import CairnEngine

@Suite struct SyncProgressTests {
  @Test func theTotalIsKnownFromTheFirstBatchOn() {
    let messages = MemorySink()
    var now = 0.0
    let output = Output(json: false, answer: MemorySink(), messages: messages, terminal: Terminal(width: 41))
    let progress = SyncProgress(output, clock: { now })
    var waiting = 30
    progress.pending = { waiting }
    let zone = ZoneID(name: "cairn")
    now = 2
    progress.handle(.sentRecordZoneChanges(zone, Self.sent(saved: 8, deleted: 2)))
    #expect(messages.text == "\rsent [######---------------------] 10/40\u{1b}[K")
    now = 3
    waiting = 20
    progress.handle(.sentRecordZoneChanges(zone, Self.sent(saved: 10)))
    #expect(messages.text.hasSuffix("\rsent [#############--------------] 20/40\u{1b}[K"))
    now = 4
    progress.handle(.fetchedRecordZoneChanges(zone, records: 7, deletions: 1, unclaimed: 0))
    progress.finish()
    #expect(messages.text.hasSuffix("\rfetched 8\u{1b}[K\r\u{1b}[K"))
  }

  private static func sent(saved: Int, deleted: Int = 0) -> SentRecords {
    var records = SentRecords()
    records.saved = saved
    records.deleted = deleted
    return records
  }
}
