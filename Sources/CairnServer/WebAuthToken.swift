import CairnServerCore

/// The secret that a client shows. Stored only as its hash; the token itself is shown once.
public enum WebAuthToken {
  /// A new token: 44 letters and digits, 261 random bits. No sign among them needs quoting anywhere.
  ///
  /// - Parameter randomness: a source fit for secrets.
  public static func make(_ randomness: any ServerRandomness = SystemServerRandomness()) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    var characters: [UInt8] = []
    while characters.count < 44 {
      let draw = Int(randomness.next() & 63)
      // Draws beyond the alphabet are thrown away, so that every character is equally likely.
      if draw < alphabet.count { characters.append(alphabet[draw]) }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// The SHA-256 under which the store knows a token.
  public static func hash(_ token: String) -> [UInt8] {
    var token = token
    return token.withUTF8 { SHA256Hash.of($0) }
  }
}
