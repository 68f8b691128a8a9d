/// Why a body could not be read.
///
/// The reason names places and expectations, never the value of a token.
public struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Kind: String, Hashable, Sendable {
    /// The body ends inside a value.
    case truncated
    /// The body is not JSON.
    case syntax
    /// The body is not UTF-8.
    case encoding
    /// The body is nested too deeply or is too large.
    case limit
    /// Valid JSON that does not mean what stands here: wrong kind, missing key, number out of range.
    case value
  }

  public var kind: Kind
  public var reason: String
  /// Where in the body, in bytes.
  public var offset: Int

  public init(_ kind: Kind, _ reason: String, at offset: Int) {
    self.kind = kind
    self.reason = reason
    self.offset = offset
  }

  public var description: String { "\(reason) (at byte \(offset))" }
}
