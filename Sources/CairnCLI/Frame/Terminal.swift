import Foundation

/// A terminal that text is shown on.
struct Terminal: Sendable {
  /// Columns.
  var width: Int

  /// The terminal behind a file descriptor; nil when there is none, or one that can't redraw a line.
  static func behind(_ descriptor: Int32, environment: [String: String]) -> Terminal? {
    guard isatty(descriptor) == 1, environment["TERM"] != "dumb" else { return nil }
    var size = winsize()
    let known = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
    return Terminal(width: known ? Int(size.ws_col) : 80)
  }
}
