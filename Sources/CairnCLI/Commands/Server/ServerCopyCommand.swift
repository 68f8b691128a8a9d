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
      let source = try OpenStore(try arguments.required("from"), isSource: true)
      defer { source.close() }
      let target = try OpenStore(try arguments.required("to"), isSource: false)
      defer { target.close() }
      let summary: StoreCopy.Summary
      do {
        summary = try StoreCopy(from: (source.storage, source.assets), to: (target.storage, target.assets)).run()
        try target.publish()
      } catch let error as ServerStartError {
        throw CommandError(.failed, error.sentence, remedy: error.remedy)
      } catch let error as CloudError {
        if error.code == .exists {
          throw CommandError(.failed, error.reason, remedy: "copy to an empty folder or database")
        }
        throw CommandError(
          .failed, error.detail ?? error.reason, remedy: "nothing was changed that counts: run the command again")
      }
      context.output.report([
        "users": .integer(Int64(summary.users)), "databases": .integer(Int64(summary.databases)),
        "zones": .integer(Int64(summary.zones)), "records": .integer(Int64(summary.records)),
        "assets": .integer(Int64(summary.assets)),
      ]) {
        let parts = [
          (summary.users, "user"), (summary.zones, "zone"), (summary.records, "record"), (summary.assets, "asset"),
        ]
        return "copied " + parts.map { counted($0, $1) }.joined(separator: ", ")
      }
      return .done
    }
  }

  /// One side of a copy. A folder is locked meanwhile, so that no server runs on it.
  private struct OpenStore {
    let storage: any Storage
    let assets: any AssetStore
    private let lock: DataDirectory.Lock?
    /// Of a folder that has no store before the copy is whole.
    private var filling: DataDirectory?

    init(_ text: String, isSource: Bool) throws {
      let place = try StorePlace(text: text)
      switch place {
      case .folder(let path):
        do {
          let directory =
            isSource ? try DataDirectory.existing(path, option: "--from") : try DataDirectory(path, option: "--to")
          lock = try directory.takeLock()
          if isSource || DataDirectory.exists(path) {
            storage = try directory.openStorage()
          } else {
            storage = try directory.openIncomingStorage()
            filling = directory
          }
          assets = try directory.openAssets()
        } catch { throw CommandError(error) }
      case .postgres(let url):
        let opened = try place.openPostgres(url, writers: 1, creating: !isSource)
        guard try !Self.isUsed(opened) else {
          opened.close()
          throw CommandError(
            .failed, "a server, or another program, works on the data at \(url)", remedy: "stop it first")
        }
        storage = opened
        assets = PostgresAssetStore(opened)
        lock = nil
      }
    }

    private static func isUsed(_ storage: PostgresStorage) throws -> Bool {
      do { return try storage.isUsedByOthers() } catch {
        throw CommandError(
          .failed, "PostgreSQL can't be asked who works on it (\(error))", remedy: "run the command again")
      }
    }

    /// Makes what was copied count.
    func publish() throws(ServerStartError) {
      guard let filling else { return }
      storage.close()
      try filling.publishIncoming()
    }

    func close() {
      storage.close()
      lock?.release()
    }
  }
#endif
