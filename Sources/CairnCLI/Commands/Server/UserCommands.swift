#if Server
  import CairnRecords
  import CairnServer
  import CairnServerCore

  /// What the commands of `cairn user` share: options, and errors in the words of users.
  private enum UserCommand {
    static let name = CommandDeclaration.Positional.required("NAME", "name of the user")

    static func administer<Result>(
      _ arguments: Arguments, creating context: CommandContext? = nil,
      _ body: (UserAdministration) throws(CloudError) -> Result
    ) throws -> Result {
      let place = try StorePlace(arguments)
      let administration = UserAdministration(storage: try place.openStorage(creating: context))
      defer { administration.close() }
      do { return try body(administration) } catch { throw described(error, arguments, place) }
    }

    private static func described(_ error: CloudError, _ arguments: Arguments, _ place: StorePlace) -> CommandError {
      let hasAddress = arguments.value("email") != nil
      return switch error.code {
      case .exists where hasAddress:
        CommandError(
          .failed, error.reason, remedy: "choose another name or address; cairn user list shows who is there")
      case .exists:
        CommandError(
          .failed, error.reason, remedy: "choose another name, or give this user a token with cairn user token")
      case .notFound: CommandError(.failed, error.reason, remedy: "see the names with cairn user list")
      case .badRequest:
        CommandError.usage(error.reason, remedy: hasAddress ? "give one like anna@example.org" : "choose another name")
      case .tryAgainLater: CommandError(.failed, error.detail ?? error.reason, remedy: "run the command again")
      default: CommandError(.failed, error.reason, remedy: place.remedy)
      }
    }

    /// What others may learn of a user.
    static let profile: [CommandDeclaration.Option] = [
      .value("email", "ADDRESS", "address by which others find and invite the user; none takes it away"),
      .value("given-name", "NAME", "given name that others see, or none"),
      .value("family-name", "NAME", "family name that others see, or none"),
      .choice("discoverable", ["yes", "no"], "whether others find the user"),
    ]

    static func change(
      _ arguments: Arguments, _ name: String, _ users: UserAdministration
    ) throws(CloudError) -> UserProfile {
      var profile = try users.profile(of: name)
      let before = profile
      func text(_ option: String, _ present: String?) -> String? {
        guard let given = arguments.value(option) else { return present }
        return given == "none" ? nil : given
      }
      profile.email = text("email", profile.email)
      profile.givenName = text("given-name", profile.givenName)
      profile.familyName = text("family-name", profile.familyName)
      if let choice = arguments.value("discoverable") { profile.isDiscoverable = choice == "yes" }
      if profile != before { try users.setProfile(profile, for: name) }
      return try users.profile(of: name)
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
      options: StorePlace.options + UserCommand.profile, example: "cairn user add anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      UserCommand.report(
        try UserCommand.administer(arguments, creating: context) { (users) throws(CloudError) in
          let made = try users.add(name)
          do throws(CloudError) { _ = try UserCommand.change(arguments, name, users) } catch {
            // Nobody is added with half of what was asked for.
            try users.remove(name)
            throw error
          }
          return made
        }, context)
      return .done
    }
  }

  /// `cairn user set`
  enum UserSetCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "set"], summary: "Sets what others may learn of a user",
      discussion: """
        Apps find people by e-mail address to share records with them. A user who is not discoverable is found by \
        nobody, but can take part in what is shared with the address. What is not named stays as it is.
        """,
      positionals: [UserCommand.name], options: StorePlace.options + UserCommand.profile,
      example: "cairn user set anna --email anna@example.org --given-name Anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let profile = try UserCommand.administer(arguments) { (users) throws(CloudError) in
        try UserCommand.change(arguments, name, users)
      }
      context.output.report([
        "user": .string(name), "email": JSONValue(profile.email), "givenName": JSONValue(profile.givenName),
        "familyName": JSONValue(profile.familyName), "discoverable": .bool(profile.isDiscoverable),
      ]) {
        let names = [profile.givenName, profile.familyName].compactMap { $0 }.joined(separator: " ")
        return "user \(name)\nname \(names.isEmpty ? "none" : names)\nemail \(profile.email ?? "none")"
          + (profile.isDiscoverable ? "" : "\nnot discoverable")
      }
      return .done
    }
  }

  /// `cairn user token`
  enum UserTokenCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "token"], summary: "Makes another token for a user", positionals: [UserCommand.name],
      options: StorePlace.options + [.flag("replace", "end the user's earlier tokens")],
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
      words: ["user", "list"], summary: "Lists the users of a server", options: StorePlace.options,
      example: "cairn user list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let users = try UserCommand.administer(arguments) { (users) throws(CloudError) in
        var found: [(user: Caller, usage: StoredUsage, email: String?)] = []
        for (user, usage) in try users.usages() {
          do throws(CloudError) { found.append((user, usage, try users.profile(of: user.name).email)) } catch {
            // Somebody else's command has removed the user meanwhile.
            guard error.code == .notFound else { throw error }
          }
        }
        return found
      }
      context.output.report([
        "users": .array(
          users.map { user, usage, email in
            [
              "user": .string(user.name), "userRecordName": .string(user.recordName), "bytes": .integer(usage.bytes),
              "quota": usage.quota.map { .integer($0) } ?? .null, "email": JSONValue(email),
            ]
          })
      ]) {
        if users.isEmpty { return "no users: cairn user add makes one" }
        var table = TextTable("user", "bytes", "quota", "email")
        for (user, usage, email) in users {
          table.add(user.name, "\(usage.bytes)", usage.quota.map { "\($0)" } ?? "", email ?? "")
        }
        return table.text
      }
      return .done
    }
  }

  /// `cairn user quota`
  enum UserQuotaCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "quota"], summary: "Limits what a user's records may take on a server",
      discussion: """
        A save that would take the user beyond the limit is refused with QUOTA_EXCEEDED; deletes always work. A record \
        counts its fields, its assets and 100 bytes. cairn user list --json shows what users have.
        """,
      positionals: [UserCommand.name, .required("BYTES", "the limit in bytes, also as 500M or 2G; none ends it")],
      options: StorePlace.options, example: "cairn user quota anna 2G --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let text = try arguments.required("BYTES")
      let quota = text == "none" ? nil : try bytes(text)
      try UserCommand.administer(arguments) { (users) throws(CloudError) in try users.setQuota(quota, for: name) }
      context.output.report(["user": .string(name), "quota": quota.map { .integer($0) } ?? .null]) {
        quota.map { "user \(name) may have \($0) bytes" } ?? "user \(name) has no limit"
      }
      return .done
    }

    private static func bytes(_ text: String) throws -> Int64 {
      let units: [Character: Int64] = ["K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000]
      var digits = Substring(text)
      var factor: Int64 = 1
      if let last = text.last, let unit = units[Character(last.uppercased())] {
        factor = unit
        digits = digits.dropLast()
      }
      guard let number = Int64(digits), number >= 0 else {
        throw CommandError.usage("'\(text)' is no number of bytes", remedy: "give BYTES, 500M, 2G or none")
      }
      let (product, overflow) = number.multipliedReportingOverflow(by: factor)
      guard !overflow else { throw CommandError.usage("'\(text)' is too large", remedy: "give none for no limit") }
      return product
    }
  }

  /// `cairn user remove`
  enum UserRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["user", "remove"], summary: "Removes a user with tokens and data from a server",
      discussion: "The user's records on the server are deleted. Databases on devices keep their rows.",
      positionals: [UserCommand.name], options: StorePlace.options,
      example: "cairn user remove anna --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      try UserCommand.administer(arguments) { (users) throws(CloudError) in try users.remove(name) }
      context.output.report(["user": .string(name), "removed": true]) { "removed user \(name)" }
      return .done
    }
  }
#endif
