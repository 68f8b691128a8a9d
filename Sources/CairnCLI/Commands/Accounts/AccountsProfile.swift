import Cairn
import CairnAccounts
import CairnClient
import CairnEngine
import CairnRecords
import CairnTables
import Foundation

/// One device of `cairn accounts`: a folder with the accounts, their credentials and where they sync.
///
/// `profile.json` makes a folder a profile; `accounts.sqlite` holds every fact of every identity; `credentials/` one
/// file per secret. No secret is in the first two (accounts.md A4).
struct AccountsProfile {
  /// Where the profile syncs, and where its older release kept logins.
  struct Place: Codable, Equatable {
    var version = 1
    var server: String
    var container: String
    var environment: String
    var zone: String
    /// Absolute path of the file of legacy logins.
    var legacy: String?
  }

  let folder: String
  var place: Place
  let core: AccountsCore

  static let positional = CommandDeclaration.Positional.required("DIR", "folder of the profile: one device")

  var database: String { Self.database(folder) }
  static func database(_ folder: String) -> String { folder + "/accounts.sqlite" }
  static func placePath(_ folder: String) -> String { folder + "/profile.json" }

  /// Opens a profile.
  static func open(_ arguments: Arguments) throws -> AccountsProfile {
    let folder = try arguments.required("DIR")
    guard let place = try readPlace(folder) else {
      throw CommandError(
        .failed, "\(folder) is no profile", remedy: "make one with cairn accounts init \(folder) --server URL --token T"
      )
    }
    return AccountsProfile(folder: folder, place: place, core: try makeCore(folder, place))
  }

  static func readPlace(_ folder: String) throws -> Place? {
    guard FileManager.default.fileExists(atPath: placePath(folder)) else { return nil }
    do {
      return try JSONDecoder().decode(Place.self, from: Data(contentsOf: URL(fileURLWithPath: placePath(folder))))
    } catch {
      throw CommandError(
        .failed, "\(placePath(folder)) can't be read", remedy: "restore it, or make the profile again with init")
    }
  }

  static func write(_ place: Place, to folder: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      try encoder.encode(place).write(to: URL(fileURLWithPath: placePath(folder)), options: .atomic)
    } catch {
      throw CommandError(.failed, "\(placePath(folder)) can't be written", remedy: "make the folder writable")
    }
  }

  /// - Parameter identity: who is signed in, where it is to be stored; nil: as it was.
  static func makeCore(_ folder: String, _ place: Place, identity: CloudIdentity? = nil) throws -> AccountsCore {
    let credentials = try AccountsPassphrase.store(folder, passphrase: AccountsPassphrase.given())
    let legacy = LegacyFile(path: place.legacy ?? folder + "/legacy.json")
    let configuration = AccountsConfiguration(
      path: database(folder), identity: identity, deviceMarker: try marker(folder), time: SystemTime(),
      randomness: SystemRandomness())
    let core = try AccountsCore(
      configuration, credentials: ProfileCredentials(files: credentials, legacy: legacy), keyValues: legacy)
    try core.runIntents()
    return core
  }

  /// A copy of the folder has another file: it becomes a device of its own (accounts.md A56).
  private static func marker(_ folder: String) throws -> String {
    let path = database(folder)
    let file = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    var status = stat()
    guard file >= 0, fstat(file, &status) == 0 else {
      throw CommandError(.failed, "\(path) can't be opened", remedy: "make the folder \(folder) writable")
    }
    close(file)
    return "\(status.st_ino)"
  }

  // MARK: Who and where

  /// The signed-in user; nil where nobody is.
  func user() throws -> String? {
    if case .user(let user) = try core.status().identity { user } else { nil }
  }

  static func connect(
    _ place: Place, user: String, token: String, tokenChanged: (@Sendable (String) -> Void)? = nil
  ) throws -> WebServicesDatabase {
    let place = SyncPlace(
      server: place.server, container: place.container, environment: place.environment, zone: place.zone, user: user)
    return try ClientSupport.connect(place, token: token, tokenChanged: tokenChanged)
  }

  /// Runs a command and gives its errors the words and exit codes of the contract.
  static func run(_ body: () throws -> ExitCode) throws -> ExitCode {
    do { return try ClientSupport.run(body) } catch let error as AccountsError { throw described(error) }
  }

  private static func described(_ error: AccountsError) -> CommandError {
    switch error {
    case .invalid(let text): CommandError.usage(text, remedy: "see --help")
    case .notFound(let id):
      CommandError(.failed, "there is no account \(id)", remedy: "see cairn accounts list")
    case .credentialNotStored(let id, _):
      CommandError(
        .failed, "the account \(id) is added, but its credential can't be stored",
        remedy: "make the folder credentials writable and run the command again")
    case .store(let text):
      CommandError(.failed, "the profile can't be used (\(text))", remedy: "nothing was changed; check the disk")
    case .notActivated:
      CommandError(.failed, "the first sync has not finished", remedy: "run cairn accounts sync first")
    default: CommandError(.failed, error.description)
    }
  }

  /// An account's ID from the command line.
  static func accountID(_ text: String) throws -> AccountID {
    guard let id = AccountID(text) else {
      throw CommandError.usage("\(text) is no account ID", remedy: "give one as cairn accounts list prints it")
    }
    return id
  }
}
