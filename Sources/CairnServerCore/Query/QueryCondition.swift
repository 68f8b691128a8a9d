import CairnRecords

/// A filter that has been checked against the schema and can be asked quickly.
struct QueryCondition: Sendable {
  enum Relation: Sendable { case less, lessOrEqual, greater, greaterOrEqual }

  enum Test: Sendable {
    case equals(FieldValue)
    case order(FieldValue, Relation)
    case near(Location, Double)
    case allTokens(Set<String>)
    case anyToken(Set<String>)
    case member([FieldValue])
    case prefix(String)
    case contains([FieldValue], all: Bool)
    case elementPrefix(String)
  }

  let key: QueryKey
  let isNegated: Bool
  let test: Test

  /// - Parameter known: the field's type; nil while no record has it.
  /// - Throws: `badRequest` where the comparator does not fit the type, or the value does not.
  init(_ filter: QueryFilter, known: SchemaMemory.Kind?) throws(CloudError) {
    key = filter.key
    isNegated = filter.isNegated
    test = try Self.test(Operand(filter, known))
  }

  private static func test(_ operand: Operand) throws(CloudError) -> Test {
    switch operand.comparator {
    case .equals: .equals(try operand.whole())
    case .lessThan: .order(try operand.ordered(), .less)
    case .lessThanOrEquals: .order(try operand.ordered(), .lessOrEqual)
    case .greaterThan: .order(try operand.ordered(), .greater)
    case .greaterThanOrEquals: .order(try operand.ordered(), .greaterOrEqual)
    case .near: try operand.near()
    case .containsAllTokens: .allTokens(try operand.tokens())
    case .containsAnyTokens: .anyToken(try operand.tokens())
    case .isIn: .member(try operand.choices())
    case .beginsWith: .prefix(try operand.prefix(inList: false))
    case .listContains: .contains([try operand.element()], all: true)
    case .listContainsAll: .contains(try operand.elements(), all: true)
    case .listContainsAny, .containsAny: .contains(try operand.elements(), all: false)
    case .listMemberBeginsWith: .elementPrefix(try operand.prefix(inList: true))
    }
  }

  /// Whether a record with this value, nil for none, meets the condition.
  func isMet(by value: FieldValue?, zone: String) -> Bool {
    guard let value else { return isNegated }
    return holds(value, zone) != isNegated
  }

  private func holds(_ value: FieldValue, _ zone: String) -> Bool {
    switch test {
    case .equals(let other): return value.matches(other, zone: zone)
    case .order(let other, let relation):
      guard let order = value.compared(to: other) else { return false }
      return switch relation {
      case .less: order < 0
      case .lessOrEqual: order <= 0
      case .greater: order > 0
      case .greaterOrEqual: order >= 0
      }
    case .near(let place, let distance):
      guard case .location(let own) = value else { return false }
      return own.distance(to: place) <= distance
    case .allTokens(let wanted): return wanted.isSubset(of: value.allTokens)
    case .anyToken(let wanted): return !wanted.isDisjoint(with: value.allTokens)
    case .member(let choices): return choices.contains { value.matches($0, zone: zone) }
    case .prefix(let prefix):
      guard case .string(let text) = value else { return false }
      return text.beginsWithBytes(of: prefix)
    case .contains(let wanted, let all):
      guard case .list(_, let elements) = value else { return false }
      func has(_ one: FieldValue) -> Bool { elements.contains { $0.matches(one, zone: zone) } }
      return all ? wanted.allSatisfy(has) : wanted.contains(where: has)
    case .elementPrefix(let prefix):
      guard case .list(_, let elements) = value else { return false }
      return elements.contains {
        if case .string(let text) = $0 { text.beginsWithBytes(of: prefix) } else { false }
      }
    }
  }
}

/// A filter's value on its way to the type that the field has.
private struct Operand {
  let comparator: Comparator
  private let filter: QueryFilter
  /// The field's type, or the one that the filter supposes.
  private let kind: SchemaMemory.Kind

  init(_ filter: QueryFilter, _ known: SchemaMemory.Kind?) throws(CloudError) {
    self.filter = filter
    comparator = filter.comparator
    kind = known ?? Self.supposed(filter)
    switch kind.type {
    case .asset, .encryptedBytes:
      throw CloudError(.badRequest, "A field of type \(kind.name) cannot be queried")
    default: break
    }
  }

  /// A field that no record has is what the comparator needs.
  private static func supposed(_ filter: QueryFilter) -> SchemaMemory.Kind {
    let own = filter.value.kind
    return switch filter.comparator {
    case .isIn: .init(own.type)
    case .listContains, .listContainsAll, .listContainsAny, .containsAny, .listMemberBeginsWith:
      .init(own.type, isList: true)
    case .containsAllTokens, .containsAnyTokens, .beginsWith: .init(.string)
    case .near: .init(.location)
    default: own
    }
  }

  private var misfit: CloudError {
    CloudError(.badRequest, "\(comparator.rawValue) does not fit a field of type \(kind.name)")
  }

  private func read(_ value: FieldValue, as kind: SchemaMemory.Kind) throws(CloudError) -> FieldValue {
    var value = value
    if case .reference(let reference) = value, case .system = filter.key { value = .string(reference.recordName) }
    let own = value.kind
    if own == kind { return value }
    // A declared STRING is no number and no bytes; an empty list is one of any type.
    let fits = !filter.isTyped || own.type != .string || value.isEmptyList
    guard fits, let read = value.read(as: kind) else {
      throw CloudError(.badRequest, "A value of type \(own.name) does not fit a field of type \(kind.name)")
    }
    return read
  }

  func whole() throws(CloudError) -> FieldValue { try read(filter.value, as: kind) }

  func ordered() throws(CloudError) -> FieldValue {
    guard kind.hasOrder else { throw misfit }
    return try whole()
  }

  func near() throws(CloudError) -> QueryCondition.Test {
    guard kind == .init(.location), case .location(let place) = filter.value else { throw misfit }
    guard let distance = filter.distance, distance.isFinite, distance >= 0 else {
      throw CloudError(.badRequest, "NEAR needs a distance in metres")
    }
    return .near(place, distance)
  }

  func tokens() throws(CloudError) -> Set<String> {
    guard kind.type == .string else { throw misfit }
    switch filter.value {
    case .string, .list(.string, _): return filter.value.allTokens
    default: throw CloudError(.badRequest, "\(comparator.rawValue) needs text")
    }
  }

  func choices() throws(CloudError) -> [FieldValue] {
    guard !kind.isList else { throw misfit }
    return try each(of: kind)
  }

  func element() throws(CloudError) -> FieldValue {
    guard kind.isList else { throw misfit }
    return try read(filter.value, as: .init(kind.type))
  }

  func elements() throws(CloudError) -> [FieldValue] {
    guard kind.isList else { throw misfit }
    return try each(of: .init(kind.type))
  }

  private func each(of kind: SchemaMemory.Kind) throws(CloudError) -> [FieldValue] {
    guard case .list(_, let values) = filter.value else {
      throw CloudError(.badRequest, "\(comparator.rawValue) needs a list")
    }
    var result: [FieldValue] = []
    for value in values { result.append(try read(value, as: kind)) }
    return result
  }

  func prefix(inList: Bool) throws(CloudError) -> String {
    guard kind == .init(.string, isList: inList), case .string(let text) = filter.value else { throw misfit }
    return text
  }
}

extension SchemaMemory.Kind {
  var hasOrder: Bool {
    guard !isList else { return false }
    return switch type {
    case .string, .int64, .double, .timestamp: true
    default: false
    }
  }
}

extension FieldValue {
  /// The words of a text or of a list of texts.
  fileprivate var allTokens: Set<String> {
    switch self {
    case .string(let text): text.queryTokens
    case .list(.string, let elements): elements.reduce(into: []) { $0.formUnion($1.allTokens) }
    default: []
    }
  }
}
