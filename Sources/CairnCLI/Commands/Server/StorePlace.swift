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
        guard !PostgresURL.looksLikeOne(folder) else {
          throw CommandError.usage("--data names a database of PostgreSQL", remedy: "give it as --postgres URL")
        }
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
    ///
    /// - Parameter creating: makes a store where there is none, and tells so: a mistyped name may be the reason.
    func openStorage(creating: CommandContext? = nil) throws -> any Storage {
      switch self {
      case .folder(let path):
        let isNew = !DataDirectory.exists(path)
        do {
          let directory =
            creating == nil ? try DataDirectory.existing(path) : try DataDirectory(path)
          let storage = try directory.openStorage()
          if isNew {
            creating?.output.warning("\(path) is new as a folder of a server's data: run cairn serve on it too")
          }
          return storage
        } catch { throw CommandError(error) }
      case .postgres(let url): return try openPostgres(url, writers: 1, creating: creating != nil)
      }
    }

    func openPostgres(_ url: PostgresURL, writers: Int, creating: Bool) throws -> PostgresStorage {
      try Self.describing { () throws(PostgresStartError) in
        try PostgresStorage(url, writers: writers, creating: creating)
      }
    }

    private static func describing<Result>(_ body: () throws(PostgresStartError) -> Result) throws -> Result {
      do { return try body() } catch { throw CommandError(error) }
    }

    /// What an operator looks at when the store fails.
    var remedy: String {
      switch self {
      case .folder: "check the data folder and its disk"
      case .postgres: "see the log of PostgreSQL"
      }
    }
  }

  extension CommandError {
    init(_ error: ServerStartError) { self.init(.failed, error.sentence, remedy: error.remedy) }
    init(_ error: PostgresStartError) { self.init(.failed, error.sentence, remedy: error.remedy) }
  }
#endif
