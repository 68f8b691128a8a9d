import CairnPostgres
import CairnServerCore
import Foundation
import ProcessSupport

/// The kinds of storage that one test body runs over.
public enum StoreKind: String, CaseIterable, Sendable, CustomStringConvertible {
  case memory, file, postgres

  public var description: String { rawValue }
}

/// A store of its own for one test. Opened once or more, at the same time where the kind allows that; gone with this
/// object.
public final class TestStore: Sendable {
  public let kind: StoreKind
  private let folder: TemporaryFolder?
  /// Of a store in PostgreSQL.
  public let url: String

  public init(_ kind: StoreKind) throws {
    self.kind = kind
    folder = kind == .file ? try TemporaryFolder() : nil
    url = kind == .postgres ? try PostgresCluster.shared().makeDatabase() : ""
  }

  /// The path of a store in a file.
  public var path: String { folder?.file("cairn.db") ?? "" }

  public func open() throws -> any Storage {
    switch kind {
    case .memory: try SQLiteStorage.inMemory()
    case .file: try SQLiteStorage(path: path)
    case .postgres: try PostgresStorage(PostgresURL(url), writers: 4)
    }
  }

  /// Copies a store in PostgreSQL as it is now, for ``restore(_:)``.
  public func backup() throws -> TestStore {
    let copy = try TestStore(.postgres)
    try PostgresCluster.shared().copyDatabase(url, to: copy.url)
    return copy
  }

  public func restore(_ copy: TestStore) throws { try PostgresCluster.shared().copyDatabase(copy.url, to: url) }

  deinit {
    guard kind == .postgres else { return }
    // Nothing depends on it: the cluster goes with the process.
    try? PostgresCluster.shared().dropDatabase(url)
  }
}
