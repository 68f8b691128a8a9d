import CairnRecords

/// What was fixed when a table was first synced, and what its capture triggers know; kept in the file.
public struct RememberedTable: Hashable, Sendable {
  public var number: Int
  /// The name that the table had when it was last looked at.
  public var name: String
  public var wireName: String
  public var keyKind: TablePlan.KeyKind
  /// Every column ever synced.
  public var columns: [RememberedColumn]
  /// The column lists of all trigger generations, the present one last; a log entry's mask counts in its generation's
  /// list (tables F9).
  public var generations: [Generation]

  public init(
    number: Int, name: String, wireName: String, keyKind: TablePlan.KeyKind, columns: [RememberedColumn],
    generations: [Generation]
  ) {
    self.number = number
    self.name = name
    self.wireName = wireName
    self.keyKind = keyKind
    self.columns = columns
    self.generations = generations
  }

  /// What triggers of one generation see.
  public struct Generation: Hashable, Sendable {
    /// The table's columns, as indices into ``RememberedTable/columns``.
    public var columns: [Int]
    /// The primary key's, in its order, as indices into ``RememberedTable/columns``.
    public var keyColumns: [Int]

    public init(columns: [Int], keyColumns: [Int]) {
      self.columns = columns
      self.keyColumns = keyColumns
    }
  }

  /// The number of the present generation, from 0.
  public var generation: Int { generations.count - 1 }
}

/// A column as it was fixed when first synced.
public struct RememberedColumn: Hashable, Sendable {
  /// The column's name when it was last there.
  public var name: String
  public var wireName: String
  public var fieldType: FieldType

  public init(name: String, wireName: String, fieldType: FieldType) {
    self.name = name
    self.wireName = wireName
    self.fieldType = fieldType
  }
}
