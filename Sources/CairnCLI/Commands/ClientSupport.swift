import Cairn
import CairnClient
import CairnEngine
import CairnRecords
import CairnTables
import Foundation

/// What the commands on a database file share.
enum ClientSupport {
  /// What a server has beside an address: where in it the rows or accounts are.
  static let placeOptions: [CommandDeclaration.Option] = [
    .value("container", "ID", "container, default \(SyncPlace.defaultContainer)"),
    .choice("environment", ["production", "development"], "default production"),
    .value("zone", "Z", "zone, default \(SyncPlace.defaultZone)"),
  ]

  static let database = CommandDeclaration.Positional.required("DB", "the database file")

  /// Errors of the file, the schema and the server in the words and exit codes of the contract.
  static func described(_ error: any Error) -> any Error {
    switch error {
    case let error as TablesError:
      if case .usage = error { return CommandError(.usage, error.description) }
      return CommandError(.failed, error.description)
    case let error as FileLock.Unavailable: return CommandError(.failed, error.description)
    case let error as FileLock.Held: return CommandError(.failed, error.description)
    case let error as ServerURL.ParseError: return CommandError(.usage, error.description)
    case let error as SchemaCreator.Refusal: return CommandError(.failed, error.description)
    default: return error
    }
  }

  static func run(_ body: () throws -> ExitCode) throws -> ExitCode {
    do { return try body() } catch { throw described(error) }
  }

  /// The client for a place, with the token given or stored.
  ///
  /// - Parameters:
  ///   - clientID: names this process among the user's devices, where it listens for news.
  ///   - tokenChanged: called with each token that the server gives in place of a used one.
  static func connect(
    _ place: SyncPlace, token: String, clientID: String? = nil, tokenChanged: (@Sendable (String) -> Void)? = nil
  ) throws -> WebServicesDatabase {
    let server = try ServerURL(parsing: place.server)
    guard let environment = ServiceOptions.Environment(rawValue: place.environment) else {
      throw CommandError.usage(
        "the environment \(place.environment) is not known", remedy: "use development or production")
    }
    var options = ServiceOptions(
      server: server, container: place.container, environment: environment, token: token)
    options.clientID = clientID
    options.tokenChanged = tokenChanged
    options.deviceName = deviceName(ProcessInfo.processInfo.environment)
    options.caFile = try authorities(ProcessInfo.processInfo.environment)
    return WebServicesDatabase(options)
  }

  /// What this device calls itself on the server, for people: CAIRN_DEVICE_NAME, which may be empty for no name, else
  /// the host's.
  static func deviceName(_ environment: [String: String]) -> String? {
    if let name = environment["CAIRN_DEVICE_NAME"] { return name.isEmpty ? nil : name }
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return nil }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The file of authorities to trust in place of the system's, for servers with a certificate of one's own: the first
  /// of these variables that is set, two of which other programs know too.
  static func authorities(_ environment: [String: String]) throws -> String? {
    for name in ["CAIRN_CA_FILE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
      guard let path = environment[name], !path.isEmpty else { continue }
      guard FileManager.default.isReadableFile(atPath: path) else {
        throw CommandError(
          .failed, "\(path), which \(name) names, can't be read",
          remedy: "give a PEM file with certificates, or unset it")
      }
      return path
    }
    return nil
  }

  /// Opens a prepared file without taking its lock.
  static func open(_ arguments: Arguments, for purpose: SyncedDatabase.Purpose = .work) throws -> SyncedDatabase {
    try SyncedDatabase(
      path: arguments.required("DB"), for: purpose, time: SystemTime(), randomness: SystemRandomness())
  }

  /// A time in ms since 1970 as ISO 8601 in UTC.
  static func time(_ milliseconds: Int64) -> String { Timestamps.text(milliseconds) }
}
