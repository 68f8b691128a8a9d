/// Versions of a set that are not applied yet.
///
/// Nearly all are taken in the order in which they came in, and nobody asks for one by name: the index of names is made
/// only when somebody does.
final class WaitingVersions {
  /// Those from `next` on are waiting, but for what `index` has not.
  private var ordered: [FetchedVersion] = []
  private var next = 0
  private var index: [String: FetchedVersion]?

  init() {}

  private init(copying other: WaitingVersions) {
    (ordered, next, index) = (other.ordered, other.next, other.index)
  }

  func copy() -> WaitingVersions { WaitingVersions(copying: self) }

  var isEmpty: Bool { index?.isEmpty ?? (next == ordered.count) }

  func add(_ version: FetchedVersion) {
    if isEmpty {
      ordered.removeAll(keepingCapacity: true)
      next = 0
      index = nil
    }
    ordered.append(version)
    index?[version.name] = version
  }

  /// Whether the version is the one that has waited longest.
  func isNext(_ version: FetchedVersion) -> Bool {
    index == nil && next < ordered.count && ordered[next].name == version.name
  }

  func find(_ name: String) -> FetchedVersion? {
    if index == nil { makeIndex() }
    return index?[name]
  }

  func remove(_ name: String) {
    if index == nil, next < ordered.count, ordered[next].name == name {
      next += 1
      return
    }
    if index == nil { makeIndex() }
    index?[name] = nil
  }

  private func makeIndex() {
    index = Dictionary(ordered[next...].map { ($0.name, $0) }, uniquingKeysWith: { $1 })
  }
}
