import CairnRecords

/// The known epochs, oldest first. Positions of an epoch are greater than its start and at most the next one's start.
public struct Epochs: Hashable, Sendable {
  public private(set) var all: [Epoch]

  public init(_ all: [Epoch]) { self.all = all }

  /// The epochs after a start of the server at `position`.
  ///
  /// Epochs that began at this position too hold nothing and are dropped: every token that names one is from a
  /// history that was undone.
  public func beginning(_ name: UInt32, at position: Int64) -> Epochs {
    Epochs(all.filter { $0.start < position } + [Epoch(name: name, start: position)])
  }

  /// The name of the epoch that `position` belongs to. Positions before all epochs belong to the first.
  func name(of position: Int64) -> UInt32 {
    var low = 0
    var high = all.count
    while low < high {
      let middle = (low + high) / 2
      if all[middle].start < position { low = middle + 1 } else { high = middle }
    }
    return all.isEmpty ? 0 : all[max(low - 1, 0)].name
  }

  /// Whether `position` is a part of the present history, under the epoch that a token names. Every history begins at
  /// 0, where nothing has been read: the epoch in which that was noted may have been dropped since.
  func contains(_ position: Int64, in name: UInt32, current: Int64) -> Bool {
    position == 0 || position <= current && self.name(of: position) == name
  }

  /// The change tag of the row at `position`: its base-36 digits and the epoch's six (web-services section 6).
  func tag(_ position: Int64) -> ChangeTag {
    let epoch = String(name(of: position), radix: 36)
    return ChangeTag(String(position, radix: 36) + String(repeating: "0", count: max(0, 6 - epoch.utf8.count)) + epoch)
  }
}
