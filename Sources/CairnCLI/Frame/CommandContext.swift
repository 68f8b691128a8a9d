import CairnClient
import Foundation

/// What a command gets from outside: where it writes, the environment, signals, tokens.
struct CommandContext: Sendable {
  let output: Output
  /// Environment variables.
  let environment: [String: String]
  let interruption: Interruption
  /// Reads the first line of standard input; nil at its end.
  let readInput: @Sendable () -> String?

  /// The tokens of this user.
  var tokens: TokenStore { TokenStore(environment: environment) }

  /// The token that the command line names: `--token T`, `--token -` (a line of standard input), else `CAIRN_TOKEN`,
  /// else nil. A token given on the command line comes before the environment's.
  func givenToken(_ arguments: Arguments) throws -> String? {
    switch arguments.value("token") {
    case "-":
      guard let line = readInput() else {
        throw CommandError.usage(
          "--token - found no token on standard input", remedy: "pipe the token into the command")
      }
      return try TokenStore.checked(line)
    case let token?: return try TokenStore.checked(token)
    case nil: return try environment["CAIRN_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }.map(TokenStore.checked)
    }
  }

  /// The token of whoever is to be found out: the one given, else the only one that is stored for the server.
  func anyToken(_ arguments: Arguments, server: String) throws -> String {
    if let given = try givenToken(arguments) { return given }
    let known = try tokens.identities(server: server)
    if known.count == 1, let token = try tokens.token(server: server, identity: known[0]) { return token }
    throw CommandError.usage(
      "there is no token for \(server)", remedy: "give it with --token T, or --token - to type it")
  }

  /// The token for a server: the one given (see ``givenToken(_:)``), else the stored one of `identity`.
  ///
  /// - Parameter command: the one that takes a token up.
  func token(
    _ arguments: Arguments, server: String, identity: String, command: String = "cairn init DB --token T"
  ) throws -> String {
    if let given = try givenToken(arguments) { return given }
    if let stored = try tokens.token(server: server, identity: identity) { return stored }
    throw CommandError(
      .failed, "there is no token for \(identity) on \(server)",
      remedy: "give one with \(command), or in CAIRN_TOKEN")
  }

  /// Stores each token that a server gives in place of a used one (web-services section 3). Nil for a token of
  /// CAIRN_TOKEN: who gave it there has to give the next.
  func tokenKeeper(server: String, identity: String) -> (@Sendable (String) -> Void)? {
    guard environment["CAIRN_TOKEN", default: ""].isEmpty else { return nil }
    return { [tokens, output] token in
      do throws(CommandError) {
        try tokens.store(token, server: server, identity: identity)
      } catch {
        output.warning("the token that the server gave in place of the used one is lost: \(error.message)")
      }
    }
  }

  /// Stores the token with which `cloud` would do its next call, as soon as it is known whose it is: the one that was
  /// given may be used up.
  func keepToken(of cloud: WebServicesDatabase, server: String) throws -> String {
    let user = try cloud.currentUser()
    try tokens.store(cloud.token, server: server, identity: user)
    return user
  }
}
