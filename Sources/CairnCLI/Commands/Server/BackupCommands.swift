#if Server
  import CairnServer

  /// `cairn server backup`
  enum ServerBackupCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "backup"], summary: "Copies a server's data, also while it runs",
      discussion: """
        The copy is one moment of the database, with the assets that it wants. Into a folder with an earlier copy only new \
        assets are copied; the earlier copy stays whole until the new one is. Nothing else in a folder gives way to a copy. A copy \
        can be served as it is. Data in PostgreSQL is copied by pg_dump -n cairn.
        """,
      options: [
        .value("data", "DIR", "folder of the server's data", required: true),
        .value("to", "DIR", "folder of the copy, created if it is missing", required: true),
      ],
      example: "cairn server backup --data /var/lib/cairn --to /backup/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let target = try arguments.required("to")
      let made: StoreBackup.Summary
      do {
        made = try StoreBackup.make(data: try arguments.required("data"), to: target)
      } catch let error as ServerStartError { throw CommandError(error) }
      context.output.report([
        "folder": .string(target), "bytes": .integer(made.bytes), "assets": JSONValue(made.assets),
        "copiedAssets": JSONValue(made.copiedAssets),
      ]) { "copied \(made.bytes) bytes and \(made.copiedAssets) of \(counted(made.assets, "asset")) to \(target)" }
      return .done
    }
  }

  /// `cairn server restore`
  enum ServerRestoreCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "restore"], summary: "Puts a copy in place of a server's data",
      discussion: """
        The server must not run. Devices that had synced past the copy notice at their next sync, keep their rows and ask; cairn \
        decide DB recreateAndReupload sends what the copy lacks. Users, tokens and keys made since the copy have to be made again.
        """,
      options: [
        .value("from", "DIR", "folder of the copy", required: true),
        .value("data", "DIR", "folder of the server's data", required: true),
        .flag("replace", "let data that is there give way; its database stays as cairn.db.replaced"),
      ],
      example: "cairn server restore --from /backup/cairn --data /var/lib/cairn --replace")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let data = try arguments.required("data")
      let made: StoreBackup.Summary
      do {
        made = try StoreBackup.restore(
          from: try arguments.required("from"), data: data, replacing: arguments.flag("replace"))
      } catch let error as ServerStartError { throw CommandError(error) }
      context.output.report([
        "folder": .string(data), "bytes": .integer(made.bytes), "assets": JSONValue(made.assets),
      ]) { "restored \(made.bytes) bytes and \(counted(made.assets, "asset")) to \(data)" }
      return .done
    }
  }
#endif
