import CairnRecords

/// A fetched page, split by category, until the machine has said what becomes of it.
struct PageAtHand {
  private(set) var parts: [Int: ZonePage] = [:]
  private(set) var outline: PageOutline

  /// Splits a page by what each category claims (engine section 7): a record goes to the first that claims it, a
  /// deletion to all, as it may come without type.
  ///
  /// - Parameter active: categories that take part; what the others claim is left out without being counted.
  init(_ page: ZonePage, categories: [any RecordCategory], active: [Int]) {
    let page = Self.once(page)
    outline = PageOutline(parts: [], unclaimed: 0, token: page.token, moreComing: page.moreComing)
    if categories.count == 1 && active == [0] {
      splitForOne(page, categories[0])
    } else {
      split(page, categories, active)
    }
    outline.parts = parts.keys.sorted().map {
      PartOutline(
        category: $0, records: parts[$0]?.records.count ?? 0, deletions: parts[$0]?.deletions.count ?? 0)
    }
  }

  /// Each identifier once (engine O8), whatever the server does: the later of two versions; and a record rather than
  /// its deletion, as nothing is to be destroyed in doubt.
  private static func once(_ page: ZonePage) -> ZonePage {
    var places: [String: Int] = [:]
    places.reserveCapacity(page.records.count)
    var isTwice = false
    for (index, record) in page.records.enumerated() where places.updateValue(index, forKey: record.id.name) != nil {
      isTwice = true
    }
    var seen = Set<String>(minimumCapacity: page.deletions.count)
    let deletions = page.deletions.filter { places[$0.id.name] == nil && seen.insert($0.id.name).inserted }
    guard isTwice || deletions.count < page.deletions.count else { return page }
    var page = page
    page.records = page.records.enumerated().filter { places[$1.id.name] == $0 }.map(\.element)
    page.deletions = deletions
    return page
  }

  /// What a look-up of a snapshot's unseen records has found, for one category.
  init(swept page: ZonePage, category: Int) {
    outline = PageOutline(parts: [], unclaimed: 0, token: page.token, moreComing: true)
    parts[category] = page
  }

  private mutating func splitForOne(_ page: ZonePage, _ category: any RecordCategory) {
    var page = page
    let count = page.records.count
    if !page.records.allSatisfy({ category.claims(type: $0.type, name: $0.id.name, in: page.zone) }) {
      page.records.removeAll { !category.claims(type: $0.type, name: $0.id.name, in: page.zone) }
    }
    if !page.deletions.allSatisfy({ category.claims(type: $0.type, name: $0.id.name, in: page.zone) }) {
      page.deletions.removeAll { !category.claims(type: $0.type, name: $0.id.name, in: page.zone) }
    }
    outline.unclaimed = count - page.records.count
    if !page.records.isEmpty || !page.deletions.isEmpty { parts[0] = page }
  }

  private mutating func split(_ page: ZonePage, _ categories: [any RecordCategory], _ active: [Int]) {
    var records: [[Record]] = Array(repeating: [], count: categories.count)
    var deletions: [[RecordDeletion]] = Array(repeating: [], count: categories.count)
    for record in page.records {
      let owner = categories.firstIndex { $0.claims(type: record.type, name: record.id.name, in: page.zone) }
      if let owner { records[owner].append(record) } else { outline.unclaimed += 1 }
    }
    for deletion in page.deletions {
      for index in active where categories[index].claims(type: deletion.type, name: deletion.id.name, in: page.zone) {
        deletions[index].append(deletion)
      }
    }
    for index in active where !records[index].isEmpty || !deletions[index].isEmpty {
      var part = page
      part.records = records[index]
      part.deletions = deletions[index]
      parts[index] = part
    }
  }
}
