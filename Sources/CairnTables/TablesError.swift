/// A failure of the tables category, as a sentence with its remedy.
public enum TablesError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Cairn's own tables in the file contradict each other.
  case damagedMetadata(String)
  /// The file was prepared by a newer Cairn (tables V9).
  case newerVersion(path: String, file: Int64, library: Int64)
  case notPrepared(String)
  /// `init` was cut off before it was done.
  case unfinished(String)
  case missingFile(String)
  /// A path, what is wrong with the file, and what to do.
  case file(String, String, String)
  /// Tables that can't be synced as they are; nothing was installed.
  case schema([SchemaProblem])
  /// Names in the options that are no tables.
  case usage([SchemaProblem])
  /// Another program has renewed capture since the file was opened: a path. Nothing was done; the file must be opened
  /// again (tables F9).
  case outdated(String)
  /// The mode does not fit what is in the file and in the zone; a sentence.
  case mode(String)

  public var description: String {
    switch self {
    case .damagedMetadata(let what): "Cairn's own tables in this file are damaged, \(what): run cairn doctor"
    case .newerVersion(let path, let file, let library):
      "\(path) was prepared by a newer Cairn (format \(file), this one knows \(library)): update Cairn"
    case .notPrepared(let path): "\(path) is not prepared for sync: run cairn init \(path) first"
    case .unfinished(let path): "\(path) is not prepared wholly, cairn init was cut off: run it again"
    case .missingFile(let path): "\(path) does not exist: check the path"
    case .file(let path, let what, let remedy): "\(path) \(what): \(remedy)"
    case .schema(let problems), .usage(let problems): problems.map(\.description).joined(separator: "\n")
    case .outdated(let path): "the tables of \(path) were changed by another program meanwhile: run the command again"
    case .mode(let sentence): sentence
    }
  }
}
