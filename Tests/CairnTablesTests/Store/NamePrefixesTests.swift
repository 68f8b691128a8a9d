import CairnRecords
import CairnSQLite
import CairnTesting
import Testing

@testable import CairnTables

/// UUIDs and change tags in few bytes.
struct NamePrefixesTests {
  private let connection: Connection
  private let prefixes: NamePrefixes
  private let randomness = SeededRandomness(seed: 7)

  init() throws {
    connection = try Connection(path: ":memory:")
    try MetadataSchema.install(in: connection)
    prefixes = NamePrefixes(connection)
  }

  private struct Stop: Error {}

  private func newName(_ integer: Int64, _ table: Int = 1) -> Value {
    .blob(prefixes.newUUID(table, integer, randomness))
  }

  @Test("names of one transaction share a prefix and come back from its number")
  func roundTrip() throws {
    try connection.transaction {
      var numbers: Set<Value> = []
      for integer in [0, 1, 255, 256, 1 << 40, 1 << 48 - 1] as [Int64] {
        let name = newName(integer)
        let stored = try prefixes.stored(name, 1, key: .integer(integer), clock: 1_000)
        numbers.insert(stored.name)
        #expect(stored.base == 1_000)
        #expect(try prefixes.expanded(stored.name, key: .integer(integer)).name == name)
        guard case .blob(let uuid) = name else { return }
        #expect(try prefixes.place(of: uuid)?.key == integer)
      }
      #expect(numbers == [.integer(1)])
    }
    let again = try NamePrefixes(connection).expanded(.integer(1), key: .integer(3))
    #expect(again.base == 1_000)
  }

  @Test("an integer outside of 48 bits gets a whole UUID", arguments: [-1, 1 << 48, .max, .min] as [Int64])
  func wholeNames(integer: Int64) throws {
    try connection.transaction {
      let name = newName(integer)
      let stored = try prefixes.stored(name, 1, key: .integer(integer), clock: 0)
      #expect(stored.name == name)
      #expect(newName(integer) != name)
    }
  }

  @Test("an integer that was left gets another name, in the same transaction and in a later one")
  func neverTwice() throws {
    var seen: Set<Value> = []
    for _ in 0..<3 {
      try connection.transaction {
        for _ in 0..<3 {
          let name = newName(5)
          #expect(seen.insert(name).inserted)
          _ = try prefixes.stored(name, 1, key: .integer(5), clock: 0)
          prefixes.integerWasLeft(1, name)
        }
      }
    }
  }

  @Test("a prefix that was rolled back is forgotten: its number may stand for another")
  func rollback() throws {
    var lost = Value.null
    #expect(throws: Stop.self) {
      try connection.transaction {
        lost = newName(5)
        _ = try prefixes.stored(lost, 1, key: .integer(5), clock: 0)
        throw Stop()
      }
    }
    try connection.transaction {
      let name = newName(5)
      let stored = try prefixes.stored(name, 1, key: .integer(5), clock: 0)
      let expanded = try prefixes.expanded(stored.name, key: .integer(5))
      #expect(expanded.name == name)
      guard case .blob(let uuid) = lost else { return }
      #expect(try prefixes.place(of: uuid) == nil)
      // A savepoint takes back what was found inside it, too.
      #expect(throws: Stop.self) {
        try connection.savepoint {
          _ = try prefixes.stored(lost, 1, key: .integer(5), clock: 0)
          throw Stop()
        }
      }
      #expect(try prefixes.place(of: uuid) == nil)
    }
  }

  @Test("a name with another integer, of another table, or of another version stays whole")
  func others() throws {
    try connection.transaction {
      let name = newName(5)
      _ = try prefixes.stored(name, 1, key: .integer(5), clock: 0)
      let moved = try prefixes.stored(name, 1, key: .integer(6), clock: 0)
      let elsewhere = try prefixes.stored(name, 2, key: .integer(5), clock: 0)
      #expect(moved.name == name && elsewhere.name == name)
      let random = Value.blob([1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 0, 0, 0, 0, 0, 5])
      let foreign = try prefixes.stored(random, 1, key: .integer(5), clock: 0)
      #expect(foreign.name == random)
      #expect(newName(5, 2) != name)
    }
  }

  @Test(
    "change tags come back as they were, whatever they look like",
    arguments: [
      "1abcdef", "zzabcdef", "0abcdef", "abcdef", "", "1ABCDEF", "Aabcdef", "12345678901234567890abcdef", "é1abcdef",
      "1zzzzzz", "gjdgxr9abcdef", "1 abcdef", "-1abcdef", "00abcdef", "10abcdef",
    ])
  func tags(text: String) throws {
    let tags = TagCoding(connection)
    try connection.execute("CREATE TABLE t(tag)")
    let write = try connection.prepare("INSERT INTO t VALUES (?1)")
    try connection.transaction {
      for tag in [ChangeTag("7abcdef"), ChangeTag(text), nil] {
        write.reset()
        try tags.bind(tag, tag == nil, to: write, 1)
        try write.run()
      }
    }
    let read = try connection.prepare("SELECT tag FROM t ORDER BY rowid")
    var found: [ChangeTag?] = []
    while try read.step() { found.append(try TagCoding(connection).read(read, 0)) }
    #expect(found == [ChangeTag("7abcdef"), ChangeTag(text), nil])
    #expect(try connection.scalar("SELECT typeof(tag) FROM t") == .text("integer"))
  }

  @Test("the ending of tags is forgotten with the transaction that met it")
  func endingRolledBack() throws {
    let tags = TagCoding(connection)
    let bound = try connection.prepare("SELECT ?1")
    #expect(throws: Stop.self) {
      try connection.transaction {
        try tags.bind(ChangeTag("7aaaaaa"), false, to: bound, 1)
        throw Stop()
      }
    }
    try connection.transaction {
      try tags.bind(ChangeTag("7bbbbbb"), false, to: bound, 1)
      #expect(try bound.step())
      #expect(try tags.read(bound, 0) == ChangeTag("7bbbbbb"))
      bound.reset()
    }
  }
}
