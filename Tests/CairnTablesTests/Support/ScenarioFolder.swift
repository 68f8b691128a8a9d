import Foundation

/// The folder of a scenario's files; it goes when neither the world nor a device needs it any more.
final class ScenarioFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("cairn-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  // What can't be removed is left to the system's own tidying of temporary files.
  deinit { try? FileManager.default.removeItem(at: url) }
}
