/// One thing that happens in a run. A step holds all that it needs, so that a run can be repeated without others.
enum Step: Hashable, Sendable {
  /// A program on a device writes.
  case program(device: Int, Program)
  case sync(device: Int, SyncPlan)
  /// Time passes everywhere, in ms.
  case pass(Int64)
  /// A device's wall clock is so many ms off from now on.
  case skew(device: Int, Int64)
  /// The process that syncs ends and is started again.
  case restart(device: Int)
  /// A program adds a column to a table.
  case addColumn(device: Int, table: Int)
  /// The file of one device is put in place of another's.
  case copy(from: Int, to: Int)
  /// The server refuses a device's token, or takes it again.
  case signIn(device: Int, Bool)
  case restartServer
  case backUpServer
  case restoreServer
  case deleteZone

  /// The devices that take part.
  var devices: [Int] {
    switch self {
    case .program(let device, _), .sync(let device, _), .skew(let device, _), .restart(let device),
      .addColumn(let device, _), .signIn(let device, _):
      [device]
    case .copy(let from, let to): [from, to]
    case .pass, .restartServer, .backUpServer, .restoreServer, .deleteZone: []
    }
  }
}

/// Statements that one program runs.
struct Program: Hashable, Sendable {
  struct Statement: Hashable, Sendable {
    var table: Int
    var sql: String
  }

  var statements: [Statement]
  var isTransaction = false
  var isRolledBack = false
  var recursiveTriggers = false
  /// How many ms pass between two statements.
  var pace: Int64 = 1
}

/// One call to sync, and what goes wrong with it.
struct SyncPlan: Hashable, Sendable {
  enum Scope: String, Hashable, Sendable { case all, fetchOnly, sendOnly }

  var scope = Scope.all
  /// Faults of the requests of this call, by their number in it.
  var faults: [Int: NetworkFault] = [:]
  /// A program that writes while the request of that number is under way.
  var during: [Int: Program] = [:]
  /// The process ends before the commit of that number.
  var crashAtCommit: Int?
  /// The commit of that number and those after it fail, so many times.
  var failingCommits: Range<Int>?

  var isPlain: Bool { faults.isEmpty && during.isEmpty && crashAtCommit == nil && failingCommits == nil }
}

/// What goes wrong with one request.
enum NetworkFault: String, Hashable, Sendable, CaseIterable {
  case lostRequest, lostAnswer, duplicated, throttled, busy, quota
  /// The change token is too old: tombstones were pruned. Only calls with a token.
  case expiredToken
}

/// Everything that a run is made of.
struct Scenario: Hashable, Sendable {
  var seed: UInt64
  var devices: Int
  var schema: SimulatedSchema
  /// Devices, besides the first, that get their tables from the zone.
  var joinEmpty: Set<Int>
  var entriesPerRequest: Int
  var steps: [Step]
}
