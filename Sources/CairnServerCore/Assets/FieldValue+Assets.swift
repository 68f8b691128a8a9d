import CairnRecords

extension FieldValue {
  /// Whether this is an asset or a list of them.
  var holdsAssets: Bool {
    switch self {
    case .asset, .list(.asset, _): true
    default: false
    }
  }

  func mapAssets<Failure: Error>(_ change: (Asset) throws(Failure) -> Asset) throws(Failure) -> FieldValue {
    switch self {
    case .asset(let asset): return .asset(try change(asset))
    case .list(.asset, let elements):
      var changed: [FieldValue] = []
      for element in elements { changed.append(try element.mapAssets(change)) }
      return .list(.asset, changed)
    default: return self
    }
  }
}
