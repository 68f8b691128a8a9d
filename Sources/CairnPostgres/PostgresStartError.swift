import CairnServerCore

/// Why a store in PostgreSQL can't be used: one sentence and what to do. Never holds a password.
public struct PostgresStartError: Error, Hashable, Sendable, CustomStringConvertible {
  public var sentence: String
  public var remedy: String

  init(_ sentence: String, remedy: String) {
    self.sentence = sentence
    self.remedy = remedy
  }

  public var description: String { "\(sentence): \(remedy)" }

  init(_ error: any Error, at url: PostgresURL) {
    switch error {
    case let error as PostgresStartError: self = error
    case let error as PostgresError: self.init(error, url)
    case let error as StorageFailure:
      self.init("the store at \(url) can't be used", remedy: error.reason)
    default: self.init("the store at \(url) can't be used (\(error))", remedy: "see the log of PostgreSQL")
    }
  }

  private init(_ error: PostgresError, _ url: PostgresURL) {
    let reason = error.message
    switch error.state {
    case "": self.init("PostgreSQL at \(url) can't be reached (\(reason))", remedy: "start it, or correct the address")
    case _ where error.state.hasPrefix("28"):
      self.init(
        "PostgreSQL at \(url) refuses the user (\(reason))",
        remedy: "correct the user in the address, and the password there, in PGPASSWORD or in ~/.pgpass")
    case "3D000":
      self.init(
        "there is no such database at \(url) (\(reason))", remedy: "make it with createdb, or correct the address")
    case "42501":
      self.init(
        "PostgreSQL at \(url) does not let the user make tables (\(reason))",
        remedy: "let the user own the database: ALTER DATABASE ... OWNER TO ...")
    case _ where error.isConnectionLoss || error.state.hasPrefix("53"):
      self.init("PostgreSQL at \(url) takes no connections now (\(reason))", remedy: "try again in a moment")
    default: self.init("the store at \(url) can't be used (\(reason))", remedy: "see the log of PostgreSQL")
    }
  }
}
