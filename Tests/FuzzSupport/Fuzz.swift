import Foundation
import Synchronization

/// Runs a parser on many mutants of sound inputs.
///
/// - `CAIRN_FUZZ`: factor on the number of mutants, 1 where it is not set.
/// - `CAIRN_FUZZ_SEED`: the first seed, else 1. One mutant has one seed: `CAIRN_FUZZ_SEED=17 CAIRN_FUZZ=0` runs seed 17
///   alone.
///
/// What a mutant must not do is said by the test. If one ends the process, its parser and seed are printed first.
public enum Fuzz {
  /// A mutant that did not keep to what the test demands.
  public struct Failure: Error, CustomStringConvertible {
    public var description: String
    public init(description: String) { self.description = description }
  }

  /// How long one mutant may take, s; much more than any does on a busy machine.
  private static let longest = 20.0

  /// - Parameters:
  ///   - count: mutants of a run in continuous integration.
  ///   - make: a mutant by a seeded mutator.
  ///   - body: throws what the parser may not do.
  public static func run<Input>(
    _ parser: String, count: Int, _ make: (inout Mutator) throws -> Input, _ body: (Input) throws -> Void
  ) throws {
    let first = number("CAIRN_FUZZ_SEED") ?? 1
    let total = max(1, Int(Double(count) * (number("CAIRN_FUZZ").map { Double($0) } ?? 1)))
    let slot = CrashNotes.take()
    defer { CrashNotes.give(slot) }
    for seed in first..<(first + UInt64(total)) {
      CrashNotes.write("\(parser), CAIRN_FUZZ_SEED=\(seed)", slot)
      var mutator = Mutator(seed: seed)
      let input = try make(&mutator)
      CrashNotes.begin(slot)
      let start = Date()
      do {
        try body(input)
      } catch {
        throw Failure(description: "\(parser), CAIRN_FUZZ_SEED=\(seed): \(error); input: \(shown(input))")
      }
      if Date().timeIntervalSince(start) > longest {
        throw Failure(description: "\(parser), CAIRN_FUZZ_SEED=\(seed) takes too long; input: \(shown(input))")
      }
    }
  }

  /// Bytes as text where they are one.
  private static func shown(_ input: Any) -> String {
    guard let bytes = input as? [UInt8] else { return String(reflecting: input) }
    return String(validating: bytes, as: UTF8.self).map { String(reflecting: $0) } ?? "\(bytes)"
  }

  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
  }

  /// Demands something of a mutant.
  public static func demand(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw Failure(description: text()) }
  }
}

/// What runs now, for the handler of the signals that a trap raises. Memory that is never freed: a handler may read it
/// at any time.
private enum CrashNotes {
  static let slots = 16
  static let width = 128
  // Written by the owner of a slot only; the handler reads when nothing else matters any more.
  nonisolated(unsafe) static let memory: UnsafeMutablePointer<UInt8> = {
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: slots * width)
    memory.initialize(repeating: 0, count: slots * width)
    // On the signal stack, where a thread has one: its own may be used up.
    var action = sigaction()
    #if canImport(Glibc)
      action.__sigaction_handler.sa_handler = handler
    #else
      action.__sigaction_u.__sa_handler = handler
    #endif
    action.sa_flags = Int32(SA_ONSTACK)
    for (i, signal) in signals.enumerated() { sigaction(signal, &action, former + i) }
    return memory
  }()
  private static let signals = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT]
  /// What handled these signals before, such as Swift's backtraces. Written once, before the handler is there.
  nonisolated(unsafe) private static let former = UnsafeMutablePointer<sigaction>.allocate(capacity: signals.count)
  private static let taken = Mutex(Set<Int>())
  /// When the present mutant of each slot began, s since 1970; 0: none runs.
  private static let begun = Mutex([Int](repeating: 0, count: slots))
  private static let longest = 60
  /// A parser that does not end would end no test.
  private static let watch: Void = Thread.detachNewThread {
    while true {
      Thread.sleep(forTimeInterval: 1)
      let now = time(nil)
      if begun.withLock({ $0.contains { $0 != 0 && now - $0 > longest } }) { abort() }
    }
  }

  static func begin(_ slot: Int) {
    _ = watch
    begun.withLock { $0[slot] = time(nil) }
  }

  private static let handler: @convention(c) (Int32) -> Void = { number in
    for slot in 0..<CrashNotes.slots {
      let note = CrashNotes.memory + slot * CrashNotes.width
      if note.pointee != 0 {
        _ = Foundation.write(2, "\nfuzz: ", 7)
        _ = Foundation.write(2, note, strlen(UnsafePointer(OpaquePointer(note))))
        _ = Foundation.write(2, "\n", 1)
      }
    }
    // Whoever handled it before goes on. A fault repeats when this returns; the others do not.
    for (i, signal) in CrashNotes.signals.enumerated() where signal == number {
      sigaction(number, CrashNotes.former + i, nil)
    }
    if number == SIGABRT || number == SIGTRAP { _ = raise(number) }
  }

  static func take() -> Int {
    taken.withLock { taken in
      let slot = (0..<slots).first { !taken.contains($0) } ?? 0
      taken.insert(slot)
      return slot
    }
  }

  static func give(_ slot: Int) {
    write("", slot)
    begun.withLock { $0[slot] = 0 }
    taken.withLock { _ = $0.remove(slot) }
  }

  static func write(_ text: String, _ slot: Int) {
    let note = memory + slot * width
    var i = 0
    for byte in text.utf8.prefix(width - 1) {
      note[i] = byte
      i += 1
    }
    note[i] = 0
  }
}
