import Foundation
import Synchronization

/// A command's answer: text for people, or exactly one JSON object with `--json`.
///
/// Standard output has the answer and nothing else. Errors, warnings and progress go to standard error, with `--json`
/// too. Safe to use from any thread.
final class Output: Sendable {
  let isJSON: Bool
  /// Where progress may be drawn; nil when standard error is not a terminal.
  let terminal: Terminal?
  private let answer: any TextSink
  private let messages: any TextSink
  private let hasAnswered = Mutex(false)

  init(json: Bool, answer: any TextSink, messages: any TextSink, terminal: Terminal? = nil) {
    isJSON = json
    self.answer = answer
    self.messages = messages
    self.terminal = terminal
  }

  /// The command's whole answer: `object` with `--json`, else `text`, to which a line end is added where it lacks one.
  ///
  /// With `--json` only the first call prints, so that the answer stays one object.
  func report(_ object: @autoclosure () throws -> JSONValue, text: () throws -> String) rethrows {
    if isJSON {
      let isFirst = hasAnswered.withLock { answered in
        defer { answered = true }
        return !answered
      }
      if isFirst { answer.write("\(try object())\n") }
    } else {
      line(try text())
    }
  }

  /// Text for people on standard output; nothing with `--json`. May hold several lines; empty text prints nothing.
  func line(_ text: String) {
    guard !isJSON, !text.isEmpty else { return }
    answer.write(text.hasSuffix("\n") ? text : text + "\n")
  }

  /// Something to know that is not the answer, on standard error.
  func warning(_ text: String) { messages.write("cairn: \(Self.oneLine(text))\n") }

  /// Why the command failed, on standard error, as one line.
  func error(_ error: CommandError) { messages.write("cairn: \(Self.oneLine(error.message))\n") }

  /// Raw text on standard error: usage and progress.
  func message(_ text: String) { messages.write(text) }

  /// Why the answer could not be written. A reader that closed the pipe has what it wanted.
  var failure: CommandError? {
    guard let code = answer.failure, code != EPIPE else { return nil }
    return CommandError(
      .failed, "standard output can't be written (\(String(cString: strerror(code))))",
      remedy: "make room or choose another file, and run the command again")
  }

  /// Text with every run of line ends as one space, without other control characters: it may come from a server or a
  /// file.
  static func oneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).joined(separator: " ")
      .filter { character in !character.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f } }
  }
}
