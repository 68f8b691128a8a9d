import CairnRecords
import Testing

@testable import CairnEngine

/// Engine section 9.
@Suite struct SchedulerTests {
  func at(_ uptime: Int64, random: UInt64 = 0) -> Moment {
    Moment(wall: 1_000_000 + uptime, uptime: uptime, random: random)
  }

  func quiet(_ settings: SyncSettings = SyncSettings()) -> Scheduler {
    var scheduler = Scheduler(settings: settings, now: at(0))
    scheduler.noteStart()
    scheduler.noteFinish(SyncResult(), at(0))
    return scheduler
  }

  @Test func aLaunchFetchesAtOnce() {
    #expect(Scheduler(settings: SyncSettings(), now: at(5)).isDue(at(5)))
  }

  @Test func aLocalChangeIsSentAfterQuietAndAtTheLatestAfterTen() {
    var scheduler = quiet()
    scheduler.noteLocalChange(at(100))
    #expect(scheduler.due == 1_100)
    for t in stride(from: Int64(600), through: 12_000, by: 500) { scheduler.noteLocalChange(at(t)) }
    #expect(scheduler.due == 10_100)
  }

  @Test func watchSendsWithinHalfASecond() {
    var scheduler = quiet(.watch)
    scheduler.noteLocalChange(at(100))
    #expect(scheduler.due == 150)
    for t in stride(from: Int64(140), through: 1_000, by: 40) { scheduler.noteLocalChange(at(t)) }
    #expect(scheduler.due == 600)
    scheduler.noteHint(at(100, random: .max))
    #expect(scheduler.due == 100)
    #expect(quiet(.watchByPolling).due == 1_000)
  }

  @Test func hintsMergeWithinTheJitter() {
    var scheduler = quiet()
    scheduler.noteHint(at(0, random: .max / 2))
    let due = scheduler.due
    scheduler.noteHint(at(500))
    #expect(scheduler.due == due)
    #expect((0...2_000).contains(due ?? -1))
  }

  @Test func e14WithoutHintsTheServerIsPolled() {
    #expect(quiet().due == 900_000)
  }

  @Test func aRetryAfterIsNotShortenedByAChange() {
    var scheduler = quiet()
    var result = SyncResult()
    result.failure = .cloud(CloudError(.throttled, "slow down"))
    result.nextRetry = at(0).wall + 30_000
    result.condition = .paused(.throttled)
    scheduler.noteFinish(result, at(0))
    scheduler.noteLocalChange(at(1_000))
    scheduler.noteHint(at(1_000))
    #expect(scheduler.due == 30_000)
    scheduler.noteReconnect(at(2_000))
    #expect(scheduler.due == 30_000)
  }

  @Test func reconnectingEndsNetworkBackoff() {
    var scheduler = quiet()
    var result = SyncResult()
    result.failure = .cloud(CloudError(.networkUnavailable, "offline"))
    result.nextRetry = at(0).wall + 60_000
    result.condition = .offline
    scheduler.noteFinish(result, at(0))
    #expect(scheduler.due == 60_000)
    scheduler.noteReconnect(at(2_000))
    #expect(scheduler.due == 2_000)
  }

  @Test func aRetryTimeBeyondTheCapIsClamped() {
    var scheduler = quiet()
    var result = SyncResult()
    result.nextRetry = .max / 2
    scheduler.noteFinish(result, at(0))
    #expect(scheduler.due == 900_000)
  }

  @Test func aRetryTimeThatIsOverDoesNotTurnInCircles() {
    var scheduler = quiet()
    var result = SyncResult()
    result.nextRetry = at(0).wall - 1
    scheduler.noteFinish(result, at(0))
    #expect(scheduler.due == 2_000)
  }

  @Test func backoffDoublesUpToTheLongest() {
    func wait(_ tries: Int, _ fraction: Double) -> Int64 {
      Backoff.wait(tries: tries, first: 2_000, longest: 900_000, fraction: fraction)
    }
    #expect(wait(1, 0) == 1_000)
    #expect(wait(2, 0) == 2_000)
    #expect(wait(3, 0.999999) <= 8_000)
    for tries in [10, 60, 1_000, .max] { #expect((450_000...900_000).contains(wait(tries, 0.3))) }
    #expect(Backoff.retryAfter(seconds: 30, fraction: 0) == 30_000)
    #expect(Backoff.retryAfter(seconds: 30, fraction: 0.9999) <= 33_000)
    #expect(Backoff.retryAfter(seconds: .infinity, fraction: 0) > 0)
  }
}
