import Foundation

/// What an operator may set of the listener.
public struct HTTPSettings: Sendable {
  /// For TLS; nil speaks plain HTTP.
  public var identity: TLSIdentity?
  /// Where metrics are served; nil serves none.
  public var metrics: ListenAddress?
  /// Whether each answer is logged, a line of JSON each.
  public var logsRequests = false
  /// Connections at once; nil are 1,000, with no look at how many files may be open.
  public var connections: Int?
  /// Whether the console is at `/console`.
  public var servesConsole = true
  /// Connections of one address; nil does not limit. Behind a proxy all come from its address.
  public var connectionsPerAddress: Int?
  /// Seconds for a whole request, however it trickles in; a body has more time, by its bytes.
  public var requestSeconds = 30.0
  /// Takes the lines of the log.
  var writeLog: @Sendable ([UInt8]) -> Void = { FileHandle.standardError.write(Data($0)) }

  public init() {}

  var limits: HTTPLimits {
    var limits = HTTPLimits()
    if let connections { limits.connections = UInt32(clamping: connections) }
    limits.connectionsPerAddress = UInt32(clamping: connectionsPerAddress ?? 0)
    limits.requestSeconds = requestSeconds
    return limits
  }
}
