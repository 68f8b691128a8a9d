#if Server
  import CairnRecords
  import CairnServer

  /// What the commands of `cairn user` share: the data folder, and errors in the words of users.
  private enum UserCommand {
    static let data = CommandDeclaration.Option.value("data", "DIR", "folder of the server's data", required: true)
    static let name = CommandDeclaration.Positional.required("NAME", "name of the user")

    static func administer<Result>(
      _ arguments: Arguments, _ body: (UserAdministration) throws(CloudError) -> Result
    ) throws -> Result {
      let administration: UserAdministration
      do { administration = try UserAdministration(data: try arguments.required("data")) } catch let error
        as ServerStartError
      {
        throw CommandError(.failed, error.sentence, remedy: error.remedy)
      }
      defer { administration.close() }
      do { return try body(administration) } catch { throw described(error, arguments) }
    }

    private static func described(_ error: CloudError, _ arguments: Arguments) -> CommandError {
      switch error.code {
      case .exists:
        CommandError(
          .failed, error.reason, remedy: "choose another name, or give this user a token with cairn user token")
      case .notFound: CommandError(.failed, error.reason, remedy: "see the names with cairn user list")
      case .badRequest: CommandError.usage(error.reason, remedy: "choose another name")
      case .tryAgainLater: CommandError(.failed, error.reason, remedy: "run the command again")
      default: CommandError(.failed, error.reason, remedy: "check the data folder and its disk")
      }
    }

    static func report(_ made: UserAdministration.NewToken, _ context: CommandContext) {
      context.output.report([
        "user": .string(made.user.name), "token": .string(made.token), "userRecordName": .string(made.user.recordName),
      ]) {
        "user \(made.user.name)\ntoken \(made.token)\nThe token is shown only now: give it to cairn init --token."
      }
    }
  }

  /// `cairn user add`
  enum UserAddCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "add"], summary: "Adds a user to a server and shows a token", positionals: [UserCommand.name],
      options: [UserCommand.data], example: "cairn user add anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      UserCommand.report(
        try UserCommand.administer(arguments) { (users) throws(CloudError) in try users.add(name) }, context)
      return .done
    }
  }

  /// `cairn user token`
  enum UserTokenCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "token"], summary: "Makes another token for a user", positionals: [UserCommand.name],
      options: [UserCommand.data, .flag("replace", "end the user's earlier tokens")],
      example: "cairn user token anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let replaces = arguments.flag("replace")
      let made = try UserCommand.administer(arguments) { (users) throws(CloudError) in
        try users.token(for: name, replacing: replaces)
      }
      UserCommand.report(made, context)
      return .done
    }
  }

  /// `cairn user list`
  enum UserListCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "list"], summary: "Lists the users of a server", options: [UserCommand.data],
      example: "cairn user list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let users = try UserCommand.administer(arguments) { (users) throws(CloudError) in try users.list() }
      context.output.report([
        "users": .array(
          users.map { ["user": .string($0.name), "userRecordName": .string($0.recordName)] })
      ]) {
        users.map(\.name).joined(separator: "\n")
      }
      return .done
    }
  }

  /// `cairn user remove`
  enum UserRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "remove"], summary: "Removes a user with tokens and data from a server",
      discussion: "The user's records on the server are deleted. Databases on devices keep their rows.",
      positionals: [UserCommand.name], options: [UserCommand.data],
      example: "cairn user remove anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      try UserCommand.administer(arguments) { (users) throws(CloudError) in try users.remove(name) }
      context.output.report(["user": .string(name), "removed": true]) { "removed user \(name)" }
      return .done
    }
  }
#endif
