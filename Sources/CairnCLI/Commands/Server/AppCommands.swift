#if Server
  import CairnRecords
  import CairnServer
  import CairnServerCore
  import Foundation

  /// What the commands of `cairn server` share: the data folder, and errors in the words of users.
  private enum AppCommand {
    static let data = StorePlace.options
    static let name = CommandDeclaration.Positional.required("NAME", "what to call it")
    static let container = CommandDeclaration.Option.value(
      "container", "NAME", "the only container that it opens; by default every one")
    static let switches = CommandDeclaration.Option.value(
      "switch", "SWITCH",
      "a deviation that some clients need: \(CompatibilitySwitch.allCases.sorted().map(\.rawValue).joined(separator: ", "))",
      repeated: true)

    static func administer<Result>(
      _ arguments: Arguments, list: String, creating context: CommandContext? = nil,
      _ body: (AppAdministration) throws(CloudError) -> Result
    ) throws -> Result {
      let place = try StorePlace(arguments)
      let administration = AppAdministration(storage: try place.openStorage(creating: context))
      defer { administration.close() }
      do { return try body(administration) } catch {
        switch error.code {
        case .exists: throw CommandError(.failed, error.reason, remedy: "choose another name, or see \(list)")
        case .notFound: throw CommandError(.failed, error.reason, remedy: "see the names with \(list)")
        case .badRequest: throw CommandError.usage(error.reason, remedy: "see --help")
        case .tryAgainLater: throw CommandError(.failed, error.detail ?? error.reason, remedy: "run the command again")
        default: throw CommandError(.failed, error.reason, remedy: place.remedy)
        }
      }
    }

    static func switches(_ arguments: Arguments) throws -> Set<CompatibilitySwitch> {
      var found: Set<CompatibilitySwitch> = []
      for text in arguments.all("switch") {
        guard let known = CompatibilitySwitch(rawValue: text) else {
          let all = CompatibilitySwitch.allCases.sorted().map(\.rawValue).joined(separator: ", ")
          throw CommandError.usage("'\(text)' is no switch", remedy: "the switches are \(all)")
        }
        found.insert(known)
      }
      return found
    }

    static func json(_ app: AppCredential) -> JSONValue {
      var members: [JSONValue.Member] = [
        .init(key: "name", value: .string(app.name)),
        .init(key: "created", value: .string(Timestamps.text(app.created))),
        .init(key: "container", value: JSONValue(app.container)),
        .init(key: "switches", value: JSONValue(app.switches.sorted().map(\.rawValue))),
      ]
      switch app.kind {
      case .apiToken: members.append(.init(key: "origins", value: JSONValue(app.origins)))
      case .serverKey: members.append(.init(key: "keyID", value: .string(Hexadecimal.text(app.id))))
      }
      return .object(members)
    }

    static func line(_ app: AppCredential) -> String {
      var words = [app.name]
      if app.kind == .serverKey { words.append(Hexadecimal.text(app.id)) }
      if let container = app.container { words.append(container) }
      words += app.switches.sorted().map(\.rawValue) + app.origins
      return words.joined(separator: "  ")
    }

    static func list(_ kind: AppCredential.Kind, _ key: String, _ arguments: Arguments, _ context: CommandContext)
      throws
      -> ExitCode
    {
      let found = try administer(arguments, list: "") { (apps) throws(CloudError) in try apps.list(kind) }
      context.output.report(.object([.init(key: key, value: .array(found.map(json)))])) {
        found.map(line).joined(separator: "\n")
      }
      return .done
    }
  }

  /// `cairn server token add`
  enum ServerTokenAddCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "token", "add"], summary: "Makes an API token, with which an app says which one it is",
      discussion: """
        Alone the token opens reads of the public database; with a user's token everything of that user. Web pages may use \
        it from the origins that are named.
        """,
      positionals: [AppCommand.name],
      options: AppCommand.data + [
        AppCommand.container, AppCommand.switches,
        .value("origin", "URL", "web pages of this origin may use it, * for all; may be repeated", repeated: true),
      ],
      example: "cairn server token add web --data /var/lib/cairn --origin https://app.example.org")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let switches = try AppCommand.switches(arguments)
      let origins = arguments.all("origin")
      let token = try AppCommand.administer(arguments, list: "cairn server token list", creating: context) {
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
      words: ["server", "token", "list"], summary: "Lists the API tokens of a server", options: AppCommand.data,
      example: "cairn server token list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try AppCommand.list(.apiToken, "tokens", arguments, context)
    }
  }

  /// `cairn server token remove`
  enum ServerTokenRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "token", "remove"], summary: "Ends an API token", positionals: [AppCommand.name],
      options: AppCommand.data, example: "cairn server token remove web --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      try AppCommand.administer(arguments, list: "cairn server token list") { (apps) throws(CloudError) in
        try apps.remove(.apiToken, named: name)
      }
      context.output.report(["name": .string(name), "removed": true]) { "removed API token \(name)" }
      return .done
    }
  }

  /// `cairn server key add`
  enum ServerKeyAddCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "add"], summary: "Lets another server in that signs its requests",
      discussion: """
        The key opens the public database and nothing else. Give its public half in PEM, or have a pair made, whose private \
        half is written to a file. The key ID that is shown goes into X-Apple-CloudKit-Request-KeyID.
        """,
      positionals: [AppCommand.name, .optional("FILE", "PEM file with the public key, - for standard input")],
      options: AppCommand.data + [
        AppCommand.container, AppCommand.switches,
        .value("generate", "FILE", "make a pair and write the private key to this file, which must not exist"),
      ],
      example: "cairn server key add nightly-job public.pem --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      let switches = try AppCommand.switches(arguments)
      let key = try key(arguments, context)
      let made = arguments.value("generate")
      if let made { try writePrivate(key, made) }
      let id: String
      do {
        id = try AppCommand.administer(arguments, list: "cairn server key list", creating: context) {
          (apps) throws(CloudError) in
          try apps.addKey(name, key, container: arguments.value("container"), switches: switches)
        }
      } catch {
        // A private key without use would only be in the way of the next try.
        if let made { unlink(made) }
        throw error
      }
      context.output.report(
        [
          "name": .string(name), "keyID": .string(id), "privateKeyFile": JSONValue(made),
        ]) { "key ID \(id)" + (made.map { "\nThe private key is in \($0): it is nowhere else." } ?? "") }
      return .done
    }

    private static func key(_ arguments: Arguments, _ context: CommandContext) throws -> P256Key {
      guard arguments.value("generate") == nil else {
        guard arguments.optional("FILE") == nil else {
          throw CommandError.usage("a public key and --generate exclude each other", remedy: "give one of them")
        }
        guard let key = P256Key.generate() else {
          throw CommandError(
            .failed, "libcrypto can't make a key", remedy: "make one with openssl ecparam -name prime256v1 -genkey")
        }
        return key
      }
      guard let file = arguments.optional("FILE") else {
        throw CommandError.usage("the public key is missing", remedy: "give its PEM file, or --generate FILE")
      }
      guard let key = P256Key(pem: try text(file, context)) else {
        throw CommandError(
          .failed, "\(file) holds no P-256 key in PEM",
          remedy: "make one with openssl ecparam -name prime256v1 -genkey -noout, and give its public half")
      }
      return key
    }

    private static func text(_ file: String, _ context: CommandContext) throws -> String {
      if file == "-" {
        var lines: [String] = []
        while let line = context.readInput() { lines.append(line) }
        return lines.joined(separator: "\n") + "\n"
      }
      do { return try String(contentsOfFile: file, encoding: .utf8) } catch {
        throw CommandError(.failed, "\(file) can't be read", remedy: "check the file and its permissions")
      }
    }

    private static func writePrivate(_ key: P256Key, _ path: String) throws {
      guard let text = key.privatePEM else {
        throw CommandError(.failed, "the key can't be written", remedy: "make one with openssl")
      }
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else {
        throw CommandError(
          .failed, "\(path) can't be created (\(String(cString: strerror(errno))))",
          remedy: "give a file that does not exist, in a folder that can be written to")
      }
      defer { close(descriptor) }
      let bytes = Array(text.utf8)
      guard write(descriptor, bytes, bytes.count) == bytes.count else {
        throw CommandError(.failed, "\(path) can't be written", remedy: "check the disk")
      }
    }
  }

  /// `cairn server key list`
  enum ServerKeyListCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "list"], summary: "Lists the keys of servers that may sign requests",
      options: AppCommand.data, example: "cairn server key list --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      try AppCommand.list(.serverKey, "keys", arguments, context)
    }
  }

  /// `cairn server key remove`
  enum ServerKeyRemoveCommand: Command {
    static let declaration = CommandDeclaration(
      words: ["server", "key", "remove"], summary: "Ends a server-to-server key", positionals: [AppCommand.name],
      options: AppCommand.data, example: "cairn server key remove nightly-job --data /var/lib/cairn")

    static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
      let name = try arguments.required("NAME")
      try AppCommand.administer(arguments, list: "cairn server key list") { (apps) throws(CloudError) in
        try apps.remove(.serverKey, named: name)
      }
      context.output.report(["name": .string(name), "removed": true]) { "removed key \(name)" }
      return .done
    }
  }
#endif
