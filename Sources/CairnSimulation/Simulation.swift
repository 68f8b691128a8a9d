/// Runs devices with real database files against the real server core, with random programs, schedules and faults, and
/// judges the outcome by a model and by invariants that share no code with what they judge (DESIGN section 8).
///
/// A run has two phases: in the first, everything may fail; then all faults end, and the devices must agree within a
/// bounded number of syncs. The same options give the same run, byte for byte, on any machine (DESIGN G9). Works on the
/// calling thread.
public enum Simulation {
  /// What a run may contain; fewer features find the cause of a violation sooner.
  public struct Features: OptionSet, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Keys other than TEXT.
    public static let manyKeys = Features(rawValue: 1)
    public static let foreignKeys = Features(rawValue: 2)
    public static let unique = Features(rawValue: 4)
    /// Of the network, the disk, processes and clocks.
    public static let faults = Features(rawValue: 8)
    /// Copied files, lost zones, restored servers, added columns.
    public static let upheavals = Features(rawValue: 16)

    /// Programs that switch recursive_triggers on.
    public static let recursiveTriggers = Features(rawValue: 32)

    /// A server that is put back to an old backup.
    public static let serverRestores = Features(rawValue: 64)

    public static let all: Features = [
      .manyKeys, .foreignKeys, .unique, .faults, .upheavals, .recursiveTriggers, .serverRestores,
    ]
  }

  /// What a run does; equal options give equal runs.
  public struct Options: Hashable, Sendable {
    public var seed: UInt64
    /// 1 to 26.
    public var devices: Int
    public var steps: Int
    public var features: Features

    public init(seed: UInt64, devices: Int = 3, steps: Int = 200, features: Features = .all) {
      self.seed = seed
      self.devices = max(1, min(26, devices))
      self.steps = steps
      self.features = features
    }
  }

  /// Something that must not be.
  public struct Violation: Hashable, Sendable, CustomStringConvertible {
    /// What was broken; the same for violations of one kind.
    public var kind: String
    public var detail: String

    public var description: String { "\(kind): \(detail)" }
  }

  /// How a run ended.
  public struct Report: Sendable {
    public var seed: UInt64
    public var violation: Violation?
    /// Everything that happened, line by line.
    public var trace: [String]
    /// FNV-1a over the trace: equal for equal runs.
    public var hash: UInt64
    public var coverage: Coverage
    /// Steps of the scenario.
    public var steps: Int
  }

  /// One run.
  ///
  /// - Throws: only when the world can't be set up: no temporary folder, no memory.
  public static func run(_ options: Options) throws -> Report { try run(StepGenerator.scenario(options)) }

  /// The run of a seed with as many steps, devices, tables and faults taken out as still give the same violation. Nil
  /// where the run has none.
  ///
  /// - Parameter tries: runs to spend at most.
  public static func shrink(_ options: Options, tries: Int = 400) throws -> Report? {
    var shrinker = try Shrinker(StepGenerator.scenario(options), tries: tries)
    return try shrinker?.shrink()
  }

  static func run(_ scenario: Scenario) throws -> Report {
    let world = try SimulatedWorld(scenario)
    let violation = world.run()
    return Report(
      seed: scenario.seed, violation: violation, trace: world.log.lines, hash: world.log.hash,
      coverage: world.totalCoverage, steps: scenario.steps.count)
  }
}

extension Simulation.Violation: Error {}
