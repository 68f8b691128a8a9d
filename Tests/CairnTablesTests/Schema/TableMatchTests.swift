import CairnRecords
import CairnSQLite
import Testing

@testable import CairnTables

@Suite("Schemas that changed while no engine ran")
struct TableMatchTests {
  private let before = "CREATE TABLE t(id TEXT PRIMARY KEY, a, b INTEGER);"
  /// A capture trigger in the shape that matters here: it names every column.
  private let trigger =
    "CREATE TRIGGER cairn_1_update AFTER UPDATE ON t BEGIN SELECT OLD.id IS NOT NEW.id, OLD.a IS NOT NEW.a, OLD.b IS NOT NEW.b; END;"

  private func remembered() throws -> [RememberedTable] { try planning(before).remembered }

  private func after(_ changes: String) throws -> PlanningResult {
    try planning(
      before + trigger + changes, SelectionOptions(ownTables: ["cairn_log"]), remembered: remembered())
  }

  @Test("what is remembered comes back from its text")
  func json() throws {
    for table in try planning(scenarioSchema).remembered { #expect(try RememberedTable(json: table.json) == table) }
    for text in ["", "{}x", "{\"columns\":[[\"a\"]]}", "{\"generations\":[[[0],[0]]]}"] {
      #expect(throws: (any Error).self) { _ = try RememberedTable(json: text) }
    }
  }

  @Test("nothing changed: same names, same generation")
  func unchanged() throws {
    let result = try after("")
    #expect(try result.remembered == remembered())
    #expect(result.plans[0].columns.map(\.wireName) == ["id", "a", "b"])
    let matches = TableMatch.reconcile(
      try remembered(), try DatabaseSchema.read(from: memoryDatabase(before + trigger)))
    #expect(matches[0].isCurrent && matches[0].suspension == nil && !matches[0].isGap)
  }

  @Test("tables T27, TS35: renames keep record type, wire names and generation")
  func renames() throws {
    let result = try after(
      "ALTER TABLE t RENAME COLUMN a TO c; ALTER TABLE t RENAME COLUMN id TO key; ALTER TABLE t RENAME TO u")
    #expect(result.plans.count == 1 && result.plans[0].name == "u" && result.plans[0].wireName == "t")
    #expect(result.plans[0].columns.map(\.wireName) == ["id", "a", "b"])
    #expect(result.remembered[0].name == "u" && result.remembered[0].generation == 0)
    #expect(result.suspended.isEmpty)
  }

  @Test("names that change places are followed")
  func swapped() throws {
    let result = try after(
      """
      ALTER TABLE t RENAME COLUMN a TO x; ALTER TABLE t RENAME COLUMN b TO a; ALTER TABLE t RENAME COLUMN x TO b
      """)
    #expect(result.plans[0].columns.map(\.name) == ["id", "b", "a"])
    #expect(result.plans[0].columns.map(\.wireName) == ["id", "a", "b"])
  }

  @Test("tables V5: a new column under the old name of a renamed one gets _2; a new generation begins")
  func addedUnderOldName() throws {
    let result = try after("ALTER TABLE t RENAME COLUMN a TO c; ALTER TABLE t ADD COLUMN a DATE")
    #expect(result.plans[0].columns.map(\.name) == ["id", "c", "b", "a"])
    #expect(result.plans[0].columns.map(\.wireName) == ["id", "a", "b", "a_2"])
    #expect(result.remembered[0].generations.map(\.columns) == [[0, 1, 2], [0, 1, 2, 3]])
    #expect(result.plans[0].columns.map(\.fieldType) == [.string, .string, .int64, .string])
  }

  @Test("a new table under the old name of a renamed one has a number and record type of its own")
  func tableUnderOldName() throws {
    let result = try after("ALTER TABLE t RENAME TO u; CREATE TABLE t(id TEXT PRIMARY KEY)")
    #expect(result.plans.map(\.name) == ["u", "t"])
    #expect(result.plans.map(\.wireName) == ["t", "t_2"] && result.plans.map(\.number) == [1, 2])
  }

  @Test("tables T29: a rebuilt table is matched by names and is a gap; the dropped column is kept in mind")
  func rebuilt() throws {
    let schema = try DatabaseSchema.read(from: memoryDatabase("CREATE TABLE t(id TEXT PRIMARY KEY, b REAL, n)"))
    let match = TableMatch.reconcile(try remembered(), schema)[0]
    #expect(match.isGap && match.columns == [0, 2, nil])
    let result = SchemaPlanner.plan(schema, remembered: try remembered())
    #expect(result.plans[0].columns.map(\.fieldType) == [.string, .int64, .string])
    // The column comes back with the name it had.
    let again = try planning("CREATE TABLE t(id TEXT PRIMARY KEY, b REAL, n, a)", remembered: result.remembered)
    #expect(again.plans[0].columns.map(\.wireName) == ["id", "b", "n", "a"])
    #expect(again.remembered[0].columns.count == 4 && again.remembered[0].generations.count == 3)
  }

  @Test("tables T30: dropped tables and changed keys are suspended, their names stay taken")
  func suspended() throws {
    let dropped = try planning("CREATE TABLE other(id TEXT PRIMARY KEY)", remembered: remembered())
    #expect(dropped.suspended == [SuspendedTable(number: 1, name: "t", reason: .dropped)])
    #expect(dropped.plans.map(\.number) == [2] && dropped.remembered.count == 2)
    let changed = try planning("CREATE TABLE t(id TEXT, a, b INTEGER, PRIMARY KEY(id, a))", remembered: remembered())
    #expect(changed.suspended.map(\.reason) == [.primaryKeyChanged] && changed.plans.isEmpty)
    let mapped = try planning("CREATE TABLE n(id INTEGER PRIMARY KEY)").remembered
    let text = try planning("CREATE TABLE n(id TEXT PRIMARY KEY)", remembered: mapped)
    #expect(text.suspended.map(\.reason) == [.primaryKeyChanged])
  }

  @Test("a table renamed to the name of a dropped one is itself; the other is dropped")
  func renamedOverDropped() throws {
    let old = try planning(before + "CREATE TABLE s(id TEXT PRIMARY KEY);")
    #expect(old.plans.map(\.name) == ["s", "t"])
    let result = try planning(
      before + trigger.replacing("cairn_1_", with: "cairn_2_") + "ALTER TABLE t RENAME TO s",
      SelectionOptions(ownTables: ["cairn_log"]), remembered: old.remembered)
    #expect(result.plans.map(\.number) == [2] && result.plans.map(\.wireName) == ["t"])
    #expect(result.suspended.map(\.number) == [1])
  }
}
