#if Server
  import CairnRecords
  import CairnServer
  import CairnServerCore

  /// What `cairn server token` and `cairn server key` share: options, words, errors in the words of users.
  enum CredentialCommand {
    static let name = CommandDeclaration.Positional.required("NAME", "what to call it")
    static let container = CommandDeclaration.Option.value(
      "container", "NAME", "the only container that it opens; by default every one")
    static let switches = CommandDeclaration.Option.value(
      "switch", "SWITCH", "a deviation that some clients need: \(allSwitches)", repeated: true)

    private static let allSwitches = CompatibilitySwitch.allCases.sorted().map(\.rawValue).joined(separator: ", ")

    static func administer<Result>(
      _ kind: AppCredential.Kind, _ arguments: Arguments, creating context: CommandContext? = nil,
      _ body: (AppAdministration) throws(CloudError) -> Result
    ) throws -> Result {
      let place = try StorePlace(arguments)
      let administration = AppAdministration(storage: try place.openStorage(creating: context))
      defer { administration.close() }
      let list = "cairn server \(kind.word) list"
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
          throw CommandError.usage("'\(text)' is no switch", remedy: "the switches are \(allSwitches)")
        }
        found.insert(known)
      }
      return found
    }

    static func list(
      _ kind: AppCredential.Kind, _ arguments: Arguments, _ context: CommandContext
    ) throws -> ExitCode {
      let found = try administer(kind, arguments) { (apps) throws(CloudError) in try apps.list(kind) }
      context.output.report(.object([.init(key: kind.word + "s", value: .array(found.map(json)))])) {
        text(found, kind)
      }
      return .done
    }

    static func remove(
      _ kind: AppCredential.Kind, _ arguments: Arguments, _ context: CommandContext
    ) throws -> ExitCode {
      let name = try arguments.required("NAME")
      try administer(kind, arguments) { (apps) throws(CloudError) in try apps.remove(kind, named: name) }
      context.output.report(["name": .string(name), "removed": true]) {
        "removed \(kind == .apiToken ? "API token" : "key") \(name)"
      }
      return .done
    }

    private static func json(_ app: AppCredential) -> JSONValue {
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

    private static func text(_ found: [AppCredential], _ kind: AppCredential.Kind) -> String {
      if found.isEmpty {
        return "no \(kind == .apiToken ? "API tokens" : "keys"): cairn server \(kind.word) add makes one"
      }
      var table = TextTable("name", "created", "container", "switches", kind == .apiToken ? "origins" : "key ID")
      for app in found {
        table.add(
          app.name, Timestamps.text(app.created), app.container ?? "every",
          app.switches.sorted().map(\.rawValue).joined(separator: " "),
          kind == .apiToken ? app.origins.joined(separator: " ") : Hexadecimal.text(app.id))
      }
      return table.text
    }
  }

  extension AppCredential.Kind {
    /// `cairn server WORD` is about it.
    fileprivate var word: String {
      switch self {
      case .apiToken: "token"
      case .serverKey: "key"
      }
    }
  }
#endif
