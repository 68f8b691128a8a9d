/// How a category gets records that the engine's token has passed by (engine C10).
public enum BootstrapDemand: Sendable {
  /// The engine's first fetch of the zone counts, where its token was nil when the category came. A category that came
  /// later, or was away while another session moved the token, gets a fetch of its own before it acts.
  case whereMissed
  /// Always a fetch of its own, before the category first acts under an identity (accounts A49).
  case own
}

/// How far a category may trust that it knows what a zone holds, under one identity (engine C10).
public enum BootstrapStatus: String, Hashable, Sendable {
  /// No bootstrap has finished: records are staged, nothing is applied or sent.
  case notActivated
  /// One has finished, but a need was raised since it began: the next call with network makes another.
  case activated
  /// Nothing was missed since the last one began.
  case current
}

/// What happened to the account (engine section 4).
public enum AccountChange: Hashable, Sendable {
  case signIn(current: String)
  case signOut(previous: String)
  case switchAccounts(previous: String, current: String)
}

/// What becomes of changes that were made without an identity (engine section 11, tables L9).
public enum AdoptionChoice: Hashable, Sendable {
  /// They belong to the identity from now on.
  case adopt
  /// They stay where they are; asked again at the next sign-in.
  case keepLocal
  /// Not yet known: asked again by the next call.
  case undecided
}
