import Cairn
import CairnAccounts
import CairnClient
import CairnTables
import Foundation

/// `cairn accounts init`
enum AccountsInitCommand: Command {
  static let declaration = CommandDeclaration(
    words: ["accounts", "init"], summary: "Makes a profile: one device with its accounts",
    discussion: """
      The token goes to your configuration folder, never into the profile. Run it again to give a new token of the same \
      user. With --local nobody is signed in: accounts stay on this device until cairn accounts switch and adopt.
      """,
    positionals: [AccountsProfile.positional],
    options: ownOptions + ClientSupport.placeOptions,
    example: "cairn accounts init phone --server https://sync.example.org --token -")

  private static let ownOptions: [CommandDeclaration.Option] = [
    .value("server", "URL", "address of the server", required: true),
    .value(
      "token", "T", "your token; - reads it from standard input; CAIRN_TOKEN is used where it is missing",
      excludes: ["local"]),
    .flag("local", "sign in later"),
  ]

  static func run(_ arguments: Arguments, _ context: CommandContext) throws -> ExitCode {
    try AccountsProfile.run {
      let folder = try arguments.required("DIR")
      let address = try ServerURL(parsing: try arguments.required("server"))
      let known = try AccountsProfile.readPlace(folder)
      let place = AccountsProfile.Place(
        server: TokenStore.normalized("\(address)"),
        container: arguments.value("container") ?? known?.container ?? SyncPlace.defaultContainer,
        environment: arguments.value("environment") ?? known?.environment ?? SyncPlace.defaultEnvironment,
        zone: arguments.value("zone") ?? known?.zone ?? SyncPlace.defaultZone, legacy: known?.legacy)
      if let known, known != place {
        throw CommandError(
          .failed, "\(folder) is a profile of another server, container or zone", remedy: "use another folder")
      }
      let user = arguments.flag("local") ? nil : try signIn(arguments, context, place)
      try prepare(folder, place, user, isKnown: known != nil)
      context.output.report([
        "identity": JSONValue(user), "server": .string(place.server), "zone": .string(place.zone),
      ]) {
        let who = user.map { "user \($0)" } ?? "nobody signed in"
        return "made the profile \(folder), \(who)\nnext: cairn accounts add, cairn accounts sync"
      }
      return .done
    }
  }

  private static func prepare(
    _ folder: String, _ place: AccountsProfile.Place, _ user: String?, isKnown: Bool
  ) throws {
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch { throw CommandError(.failed, "\(folder) can't be made", remedy: "choose a folder that is writable") }
    guard !isKnown else {
      // A new token of the same user; another one is a switch, which the user has to ask for.
      let profile = AccountsProfile(folder: folder, place: place, core: try AccountsProfile.makeCore(folder, place))
      guard try profile.user() == user else {
        throw CommandError(
          .failed, "\(folder) belongs to another user", remedy: "use cairn accounts switch to change the user")
      }
      return
    }
    // What makes the folder a profile comes last.
    _ = try AccountsProfile.makeCore(folder, place, identity: user.map { .user($0) } ?? CloudIdentity.none)
    try AccountsProfile.write(place, to: folder)
  }

  /// Asks the server whose token it is, and keeps it.
  static func signIn(
    _ arguments: Arguments, _ context: CommandContext, _ place: AccountsProfile.Place
  ) throws -> String {
    let token = try context.anyToken(arguments, server: place.server)
    let cloud = try AccountsProfile.connect(place, user: "", token: token)
    return try context.interruption.whileHandling({ cloud.cancel() }) {
      try context.keepToken(of: cloud, server: place.server)
    }
  }
}
