import CairnRecords
import CairnSQLite

/// A fetched record of a synced table, read into the table's columns.
struct FetchedVersion {
  /// Why a record can't be read.
  struct Problem: Error {
    var reason: ParkedReason
    var detail: String
  }

  /// Behind one reference: versions are sorted, and stand in arrays and dictionaries, by the thousand. Unchecked: it is
  /// changed only through the one version that refers to it.
  private final class Content {
    @exclusivity(unchecked) var record: Record
    let plan: TablePlan
    @exclusivity(unchecked) var clocks: FieldClocks
    @exclusivity(unchecked) var cells: [MergeCell]
    @exclusivity(unchecked) var kept: KeptFields?
    @exclusivity(unchecked) var wish: Int64?

    init(_ record: Record, _ plan: TablePlan, _ clocks: FieldClocks, _ cells: [MergeCell]) {
      self.record = record
      self.plan = plan
      self.clocks = clocks
      self.cells = cells
    }

    init(copying other: Content) {
      (record, plan, clocks, cells) = (other.record, other.plan, other.clocks, other.cells)
      (kept, wish) = (other.kept, other.wish)
    }
  }

  private var content: Content

  private mutating func own() -> Content {
    if !isKnownUniquelyReferenced(&content) { content = Content(copying: content) }
    return content
  }

  var record: Record {
    get { content.record }
    set { own().record = newValue }
  }
  var plan: TablePlan { content.plan }
  var clocks: FieldClocks {
    get { content.clocks }
    set { own().clocks = newValue }
  }
  /// By column; meaningful where ``FieldClocks/clock(of:)`` is not nil.
  var cells: [MergeCell] {
    get { content.cells }
    set { own().cells = newValue }
  }
  /// Fields without a column here.
  var kept: KeptFields? {
    get { content.kept }
    set { own().kept = newValue }
  }
  /// The creator's integer, of mapped tables.
  var wish: Int64? {
    get { content.wish }
    set { own().wish = newValue }
  }
  /// Columns that were set to NULL because the parent they named was deleted here (tables M13).
  private(set) var detachedColumns: [Int] = []
  /// Whether this is parked content that is tried again, not something that was just fetched.
  var isRetry = false
  /// Whether the row lacks something of it, though its tag is known here (tables T29).
  var isMissed = false

  // Asked for all the time: not by way of `record`, which would be copied.
  var name: String { content.record.id.name }
  var tag: ChangeTag? { content.record.changeTag }

  /// - Parameter leavesOutAssets: values in assets that are not here count as NULL; for what only keys and clocks
  ///   decide.
  init(
    _ record: Record, _ plan: TablePlan, _ content: RecordContent, leavesOutAssets: Bool = false
  ) throws(Problem) {
    var clocks = FieldClocks(life: content.life, cut: content.cut, columns: content.clocks)
    var cells: [MergeCell] = []
    cells.reserveCapacity(content.values.count)
    for value in content.values {
      switch value {
      case .value(let value): cells.append(.value(value))
      case .reference(let name): cells.append(.reference(name))
      case .large where leavesOutAssets: cells.append(.null)
      case .large:
        throw Problem(reason: .assetMissing, detail: "a value lies in an asset that could not be fetched")
      }
    }
    var kept: KeptFields?
    for field in content.kept {
      clocks.kept[field.name] = field.clock
      if kept == nil { kept = KeptFields() }
      kept?.add(field)
    }
    self.content = Content(record, plan, clocks, cells)
    self.content.kept = kept
    self.content.wish = content.key
  }

  static func decode(
    _ record: Record, _ codec: RecordBodyCodec, leavesOutAssets: Bool = false
  ) -> Result<FetchedVersion, Problem> {
    do {
      let content = try codec.decode(record.fields, foreignClock: record.modified?.timestamp ?? 0)
      return .success(try FetchedVersion(record, codec.plan, content, leavesOutAssets: leavesOutAssets))
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
      version.clocks.columns[column] = max(clock, version.clocks.columns[column].next)
    }
    return version
  }
}
