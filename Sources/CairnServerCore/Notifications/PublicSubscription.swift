/// The name of a subscription's row in a public database, where everybody has subscriptions of their own: `USER/ID`,
/// with the storage's key of the user.
struct PublicSubscription: Hashable, Sendable {
  var user: Int64
  /// The name that the user gave.
  var id: String

  init(user: Int64, id: String) {
    self.user = user
    self.id = id
  }

  init?(row: String) {
    guard let end = row.firstIndex(of: "/"), let user = Int64(row[..<end]) else { return nil }
    self.init(user: user, id: String(row[row.index(after: end)...]))
  }

  var row: String { "\(user)/\(id)" }
}

/// The names of all such rows of one user: from `first` to before `end`.
public struct PublicSubscriptionRange: Sendable {
  public let first: String
  public let end: String

  public init(of user: Int64) {
    first = "\(user)/"
    // The character after the slash.
    end = "\(user)0"
  }
}
