import Synchronization
import Testing

@testable import CairnCLI

@Suite struct InterruptionTests {
  @Test func theFirstOneRunsTheHandlersAndTheSecondIsNotHandled() {
    let interruption = Interruption()
    let count = Counter()
    interruption.whileHandling({ count.increment() }) {
      #expect(interruption.interrupt())
      #expect(interruption.isInterrupted)
      #expect(!interruption.interrupt())
    }
    #expect(count.value == 1)
  }

  @Test func withoutHandlerNothingIsHandled() {
    let interruption = Interruption()
    interruption.whileHandling({}) {}
    #expect(!interruption.interrupt())
    #expect(!interruption.isInterrupted)
  }
}

private final class Counter: Sendable {
  private let storage = Mutex(0)
  var value: Int { storage.withLock { $0 } }
  func increment() { storage.withLock { $0 += 1 } }
}
