import CairnRecords
import CairnSQLite

/// A fetched record of a synced table, read into the table's columns.
struct FetchedVersion {
  /// Why a record can't be read.
  struct Problem: Error {
    var reason: ParkedReason
    var detail: String
  }

  var record: Record
  var plan: TablePlan
  var clocks: FieldClocks
  /// By column; meaningful where ``FieldClocks/clock(of:)`` is not nil.
  var cells: [MergeCell]
  /// Fields without a column here.
  var kept: KeptFields?
  /// The creator's integer, of mapped tables.
  var wish: Int64?
  /// Columns that were set to NULL because the parent they named was deleted here (tables M13).
  private(set) var detachedColumns: [Int] = []
  /// Whether this is parked content that is tried again, not something that was just fetched.
  var isRetry = false

  var name: String { record.id.name }
  var tag: ChangeTag? { record.changeTag }

  init(_ record: Record, _ plan: TablePlan, _ content: RecordContent) throws(Problem) {
    self.record = record
    self.plan = plan
    clocks = FieldClocks(life: content.life, cut: content.cut, columns: content.clocks)
    wish = content.key
    cells = []
    cells.reserveCapacity(content.values.count)
    for value in content.values {
      switch value {
      case .value(let value): cells.append(.value(value))
      case .reference(let name): cells.append(.reference(name))
      case .large:
        throw Problem(reason: .assetMissing, detail: "a value lies in an asset, which can't be fetched yet")
      }
    }
    guard !content.kept.isEmpty else { return }
    var kept = KeptFields()
    for field in content.kept {
      clocks.kept[field.name] = field.clock
      kept.add(field)
    }
    self.kept = kept
  }

  static func decode(_ record: Record, _ codec: RecordBodyCodec) -> Result<FetchedVersion, Problem> {
    do {
      let content = try codec.decode(record.fields, foreignClock: record.modified?.timestamp ?? 0)
      return .success(try FetchedVersion(record, codec.plan, content))
    } catch let problem as Problem {
      return .failure(problem)
    } catch RecordBodyError.newerFormat(let format) {
      return .failure(Problem(reason: .newerFormat, detail: "its format \(format) is newer than this Cairn's"))
    } catch RecordBodyError.undecodable(let detail) {
      return .failure(Problem(reason: .undecodable, detail: detail))
    } catch {
      return .failure(Problem(reason: .undecodable, detail: "\(error)"))
    }
  }

  /// The same version with a foreign key set to NULL or its default because its parent was deleted at `clock`
  /// (tables M12, M13).
  func detached(_ columns: [Int], _ cells: [MergeCell], at clock: FieldClock) -> FetchedVersion {
    var version = self
    version.detachedColumns += columns
    for (column, cell) in zip(columns, cells) {
      version.cells[column] = cell
      version.clocks.columns[column] = max(clock, version.clocks.columns[column] + 1)
    }
    return version
  }
}
