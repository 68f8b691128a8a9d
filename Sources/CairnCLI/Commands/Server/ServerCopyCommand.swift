#if Server
  import CairnPostgres
  import CairnRecords
  import CairnServer
  import CairnServerCore

  /// `cairn server copy`
  enum ServerCopyCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "copy"], summary: "Copies a server's data from a folder to PostgreSQL, or back",
      discussion: """
        Stop the servers of both first. The target has to be empty; everything is copied: users and tokens, records and \
        deletions with their order, subscriptions and assets. Start the server on the copy under the old address: \
        clients go on as if nothing had happened.
        """,
      options: [
        .value("from", "DIR|URL", "folder or postgres://USER@HOST/DATABASE to copy", required: true),
        .value("to", "DIR|URL", "where to, a folder or database without data", required: true),
      ],
      example: "cairn server copy --from /var/lib/cairn --to postgres://cairn@localhost/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let source = try OpenStore(StorePlace(text: try arguments.required("from")), isSource: true)
      defer { source.close() }
      let target = try OpenStore(StorePlace(text: try arguments.required("to")), isSource: false)
      defer { target.close() }
      let summary: StoreCopy.Summary
      do {
        summary = try StoreCopy(from: (source.storage, source.assets), to: (target.storage, target.assets)).run()
      } catch {
        if error.code == .exists {
          throw CommandError(.failed, error.reason, remedy: "copy to an empty folder or database")
        }
        throw CommandError(.failed, error.reason, remedy: "nothing was changed that counts: run the command again")
      }
      context.output.report([
        "users": .integer(Int64(summary.users)), "databases": .integer(Int64(summary.databases)),
        "zones": .integer(Int64(summary.zones)), "records": .integer(Int64(summary.records)),
        "assets": .integer(Int64(summary.assets)),
      ]) {
        "copied \(summary.users) users, \(summary.zones) zones, \(summary.records) records, \(summary.assets) assets"
      }
      return .done
    }
  }

  /// One side of a copy. A folder is locked meanwhile, so that no server runs on it.
  private struct OpenStore {
    let storage: any Storage
    let assets: any AssetStore
    private let lock: DataDirectory.Lock?

    init(_ place: StorePlace, isSource: Bool) throws {
      switch place {
      case .folder(let path):
        do {
          if isSource, !DataDirectory.exists(path) {
            throw ServerStartError("there is no server's data in \(path)", remedy: "give another folder with --from")
          }
          let directory = try DataDirectory(path)
          lock = try directory.takeLock()
          storage = try directory.openStorage()
          assets = try directory.openAssets()
        } catch let error as ServerStartError {
          throw CommandError(.failed, error.sentence, remedy: error.remedy)
        }
      case .postgres(let url):
        let opened = try place.openPostgres(url, writers: 1)
        storage = opened
        assets = PostgresAssetStore(opened)
        lock = nil
      }
    }

    func close() {
      storage.close()
      lock?.release()
    }
  }
#endif
