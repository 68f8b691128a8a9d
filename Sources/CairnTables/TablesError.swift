/// A failure of the tables category, as a sentence with its remedy.
public enum TablesError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Cairn's own tables in the file contradict each other.
  case damagedMetadata(String)
  /// The file was prepared by a newer Cairn (tables V9).
  case newerVersion(file: Int64, library: Int64)
  case notInitialised(String)

  public var description: String {
    switch self {
    case .damagedMetadata(let what): "\(what): run cairn doctor"
    case .newerVersion(let file, let library):
      "the file was prepared by a newer Cairn (format \(file), this one knows \(library)): update Cairn"
    case .notInitialised(let path): "\(path) is not prepared for sync: run cairn init"
    }
  }
}
