import CairnAccounts

/// The two kinds of instance that the reader knows, and the ones that ship with it.
enum Kind: String, Codable, CaseIterable {
  /// Private feeds of articles.
  case feeds
  /// Short statuses of people.
  case statuses
}

struct Instance {
  var id: InstanceID
  var kind: Kind
  var url: String

  /// The list that every device has, so that an instance has one ID everywhere.
  static let all: [Instance] = [
    ("feeds", "https://feeds.example", "4b0a5f34-0001-4000-8000-000000000001"),
    ("statuses", "https://social.example", "4b0a5f34-0001-4000-8000-000000000002"),
    ("statuses", "https://friends.example", "4b0a5f34-0001-4000-8000-000000000003"),
  ].compactMap { kind, url, id in
    guard let kind = Kind(rawValue: kind), let id = InstanceID(id) else { return nil }
    return Instance(id: id, kind: kind, url: url)
  }

  static func at(_ url: String) -> Instance? { all.first { $0.url == InstanceURL.cleaned(url) } }
}

/// Fetches what an account may read. A real reader asks the instance; tests and the demonstration bring their own.
protocol TimelineService: Sendable {
  /// Throws ``Refused`` where the instance does not take the secret.
  func timeline(_ kind: Kind, of user: String, secret: String) async throws -> [String]
}

struct Refused: Error {}

/// Stands in for the instances: it takes every secret but `wrong`.
struct DemoService: TimelineService {
  func timeline(_ kind: Kind, of user: String, secret: String) async throws -> [String] {
    if secret == "wrong" { throw Refused() }
    switch kind {
    case .feeds: return ["\(user)'s feed: the weather", "\(user)'s feed: the village"]
    case .statuses: return ["@\(user): good morning"]
    }
  }
}
