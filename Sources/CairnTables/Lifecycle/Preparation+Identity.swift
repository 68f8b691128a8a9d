import CairnEngine
import CairnSQLite

/// `init` with the token of another user than the one whom the file belongs to (tables L10).
extension Preparation {
  /// - Returns: nil when the file belongs to `user`, or syncs elsewhere.
  func changeIdentity(to user: String) throws -> Outcome? {
    let connection = try DatabaseOpener.open(options.path, mode: .readWrite)
    let settings = FileSettings(connection)
    guard try isPlace(of: settings), let owner = try settings.get(.user), owner != user else { return nil }
    if let entry = try FiledIdentities(connection).entries().first(where: { $0.user == user }) {
      try IdentityChange(connection, time: time, randomness: randomness).bringBack(entry)
      var outcome = try again(user)
      outcome.setAside = owner
      return outcome
    }
    guard options.mode != nil else {
      throw TablesError.mode(
        "\(options.path) belongs to another user of this server (\(owner)): use a token of that user, or choose with --mode create, join or merge what becomes of its rows under \(user); what is \(owner)'s is kept in the file and comes back with that user's token"
      )
    }
    return try preparation(settings).prepareAnew(exists: true, user: user, leaving: owner)
  }

  /// The same tables as before, unless others are named.
  private func preparation(_ settings: FileSettings) throws -> Preparation {
    var options = options
    if options.selection == SelectionOptions() { options.selection = try Selection.read(settings).options }
    return Preparation(options, cloud: cloud, time: time, randomness: randomness)
  }

  /// Whether the file syncs where the options say.
  func isPlace(of settings: FileSettings) throws -> Bool {
    try settings.get(.server) == options.place.server && settings.get(.container) == options.place.container
      && settings.get(.zone) == options.place.zone
  }
}
