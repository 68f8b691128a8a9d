/// The value of a context: the user's explicit choice, or explicitly none (accounts.md A33).
struct RegisterValue: Hashable, Sendable, Comparable {
  var accountID: AccountID?
  var stamp: Stamp

  /// Time, then writer, then value; greater wins, so that every order of merging gives the same.
  static func < (a: RegisterValue, b: RegisterValue) -> Bool {
    if a.stamp != b.stamp { return a.stamp < b.stamp }
    return (a.accountID?.rawValue ?? "") < (b.accountID?.rawValue ?? "")
  }
}
