import CairnEngine
import CairnRecords
import CairnSQLite

/// Turns values that are too large for their record into assets (tables 1.5).
struct OutgoingAssets {
  /// What of a record changes its way of travelling.
  struct Choice {
    /// Wire names of fields that must be sent though the server has confirmed their values.
    var alsoSent: Set<String> = []
    /// Wire names of fields whose values were assets in the server's version and are so no more.
    var released: Set<String> = []
  }

  private let file: FileContext

  init(_ file: FileContext) { self.file = file }

  /// - Parameters:
  ///   - isOnServer: whether the server has a version of the record.
  ///   - isUnchanged: whether the server has confirmed the present value of the field of that wire name.
  func choose(
    _ content: inout RecordContent, _ plan: TablePlan, name: String, isOnServer: Bool,
    isUnchanged: (String) -> Bool
  ) throws -> Choice {
    var choice = Choice()
    let isSmall = LargeValues.areSmall(content)
    if isSmall, try file.large.knowsNothing() { return choice }
    let known = isOnServer ? try file.large.known(name) : [:]
    if isSmall, known.isEmpty { return choice }
    var sent: [String: LargeStore.Known] = [:]
    for column in isSmall ? [] : LargeValues.columns(content, plan) {
      let wire = plan.columns[column].wireName
      guard case .value(let value) = content.values[column] else { continue }
      var asset: LargeStore.Known
      if let old = known[wire], isUnchanged(wire) {
        asset = old
      } else {
        let bytes = value.largeBytes
        asset = LargeStore.Known(hash: LargeValue.hash(of: bytes), checksum: "", size: Int64(bytes.count))
        if let old = known[wire], old.hash == asset.hash { asset = old }
      }
      if known[wire] == nil { choice.alsoSent.insert(wire) }
      sent[wire] = asset
      let travelling = asset.checksum.isEmpty ? Asset.pending(hash: asset.hash, size: asset.size) : asset.asset
      content.values[column] = .large(LargeValue(isText: value.isLargeText, hash: asset.hash, asset: travelling))
    }
    for wire in known.keys where sent[wire] == nil {
      choice.released.insert(wire)
      choice.alsoSent.insert(wire)
    }
    file.large.setOutgoing(name, sent)
    return choice
  }
}

extension LargeValues {
  /// Whether no value of the record can have to become an asset.
  static func areSmall(_ content: RecordContent) -> Bool {
    var total = 0
    for value in content.values {
      guard case .value(let value) = value else { continue }
      switch value {
      case .text(let text): total += text.utf8.count
      case .blob(let bytes), .malformedText(let bytes): total += bytes.count
      default: break
      }
    }
    return total <= valueLimit
  }
}

extension Value {
  /// The bytes of a TEXT or BLOB.
  var largeBytes: [UInt8] {
    switch self {
    case .text(let text): Array(text.utf8)
    case .malformedText(let bytes), .blob(let bytes): bytes
    case .null, .integer, .real: []
    }
  }

  var isLargeText: Bool {
    switch self {
    case .text, .malformedText: true
    case .blob, .null, .integer, .real: false
    }
  }
}
