#if Server
  import CairnRecords
  import CairnServer
  import CairnServerCore

  /// `cairn server token add`
  enum ServerTokenAddCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "token", "add"], summary: "Makes an API token, with which an app says which one it is",
      discussion: """
        Alone the token opens reads of the public database; with a user's token everything of that user. Web pages may use \
        it from the origins that are named.
        """,
      positionals: [CredentialCommand.name],
      options: StorePlace.options + [
        CredentialCommand.container, CredentialCommand.switches,
        .value("origin", "URL", "web pages of this origin may use it, * for all", repeated: true),
      ],
      example: "cairn server token add web --data /var/lib/cairn --origin https://app.example.org")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let switches = try CredentialCommand.switches(arguments)
      let origins = arguments.all("origin")
      let token = try CredentialCommand.administer(.apiToken, arguments, creating: context) {
        (apps) throws(CloudError) in
        try apps.addToken(name, container: arguments.value("container"), switches: switches, origins: origins)
      }
      context.output.report(["name": .string(name), "token": .string(token)]) {
        "token \(token)\nThe token is shown only now: apps send it as ckAPIToken."
      }
      return .done
    }
  }

  /// `cairn server token list`
  enum ServerTokenListCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "token", "list"], summary: "Lists the API tokens of a server", options: StorePlace.options,
      example: "cairn server token list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try CredentialCommand.list(.apiToken, arguments, context)
    }
  }

  /// `cairn server token remove`
  enum ServerTokenRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "token", "remove"], summary: "Ends an API token", positionals: [CredentialCommand.name],
      options: StorePlace.options, example: "cairn server token remove web --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try CredentialCommand.remove(.apiToken, arguments, context)
    }
  }
#endif
