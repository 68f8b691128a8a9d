/// A progress bar on standard error: only on a terminal, and only for what takes over a second (DESIGN section 7).
///
/// Used by one thread. Call ``finish()`` before other output.
struct ProgressBar {
  private let output: Output
  /// What the count counts.
  var label: String
  /// Seconds from any fixed moment.
  private let clock: () -> Double
  private let start: Double
  private var lastDrawn: Double?

  private static let delay = 1.0
  private static let interval = 0.1

  init(_ label: String, _ output: Output, clock: @escaping () -> Double = ProgressBar.uptime) {
    self.label = label
    self.output = output
    self.clock = clock
    start = clock()
  }

  /// - Parameter total: nil while it is not known; then only the count is shown.
  mutating func update(_ done: Int, of total: Int?) {
    guard let terminal = output.terminal else { return }
    let now = clock()
    guard now - start >= Self.delay, now - (lastDrawn ?? -1) >= Self.interval else { return }
    lastDrawn = now
    output.message("\r\(Self.line(label, done, total, width: terminal.width - 1))\u{1b}[K")
  }

  /// Takes the bar away.
  mutating func finish() {
    if lastDrawn != nil { output.message("\r\u{1b}[K") }
    lastDrawn = nil
  }

  static func line(_ label: String, _ done: Int, _ total: Int?, width: Int) -> String {
    guard let total, total > 0 else { return String("\(label) \(done)".prefix(max(0, width))) }
    let share = min(1, max(0, Double(done) / Double(total)))
    let counts = " \(done)/\(total)"
    let room = width - label.count - counts.count - 3
    guard room >= 8 else { return String("\(label)\(counts)".prefix(max(0, width))) }
    let bar = min(room, 40)
    let filled = Int(share * Double(bar))
    return "\(label) [\(String(repeating: "#", count: filled))\(String(repeating: "-", count: bar - filled))]\(counts)"
  }

  static func uptime() -> Double {
    let now = ContinuousClock.now
    let components = now.duration(to: origin).components
    return -(Double(components.seconds) + Double(components.attoseconds) / 1e18)
  }

  private static let origin = ContinuousClock.now
}
