#if Server
  import CairnPostgres
  import CairnServer
  import CairnServerCore

  /// Where a server's data is: a folder, or a database of PostgreSQL.
  enum StorePlace {
    case folder(String)
    case postgres(PostgresURL)

    /// One of them is given.
    static let options: [CommandDeclaration.Option] = [
      .value("data", "DIR", "folder of the server's data", excludes: ["postgres"]),
      .value("postgres", "URL", "database of the server's data, postgres://USER@HOST/DATABASE, instead of a folder"),
    ]

    init(_ arguments: Arguments) throws {
      if let url = arguments.value("postgres") {
        self = .postgres(try Self.describing { () throws(PostgresStartError) in try PostgresURL(url) })
      } else if let folder = arguments.value("data") {
        self = .folder(folder)
      } else {
        throw CommandError.usage("--data is missing", remedy: "give --data DIR, or --postgres URL")
      }
    }

    /// A folder, or the address of a database.
    init(text: String) throws {
      if PostgresURL.looksLikeOne(text) {
        self = .postgres(try Self.describing { () throws(PostgresStartError) in try PostgresURL(text) })
      } else {
        self = .folder(text)
      }
    }

    /// Opens the store, for commands that work beside a running server.
    func openStorage() throws -> any Storage {
      switch self {
      case .folder(let path):
        do { return try DataDirectory(path).openStorage() } catch {
          throw CommandError(.failed, error.sentence, remedy: error.remedy)
        }
      case .postgres(let url): return try openPostgres(url, writers: 1)
      }
    }

    func openPostgres(_ url: PostgresURL, writers: Int) throws -> PostgresStorage {
      try Self.describing { () throws(PostgresStartError) in try PostgresStorage(url, writers: writers) }
    }

    private static func describing<Result>(_ body: () throws(PostgresStartError) -> Result) throws -> Result {
      do { return try body() } catch { throw CommandError(.failed, error.sentence, remedy: error.remedy) }
    }

    /// What an operator looks at when the store fails.
    var remedy: String {
      switch self {
      case .folder: "check the data folder and its disk"
      case .postgres: "see the log of PostgreSQL"
      }
    }
  }
#endif
