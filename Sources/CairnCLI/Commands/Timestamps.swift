import Foundation

/// Times for people and JSON.
enum Timestamps {
  /// `2026-11-30T03:10:00.123Z`
  static func text(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }
}
