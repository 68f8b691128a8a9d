import CairnRecords

/// What a query asks for (web-services section 9). Filters are ANDed.
public struct RecordQuery: Hashable, Sendable {
  public var recordType: String
  public var filters: [QueryFilter]
  public var sort: [QuerySort]

  public init(recordType: String, filters: [QueryFilter] = [], sort: [QuerySort] = []) {
    self.recordType = recordType
    self.filters = filters
    self.sort = sort
  }

  /// The query with the caller's own name where a filter names a user as `__defaultOwner__` or `_defaultOwner`
  /// (web-services section 6).
  func asked(by caller: Caller) -> RecordQuery {
    var query = self
    for i in query.filters.indices where query.filters[i].key.isUser {
      query.filters[i].value = query.filters[i].value.naming(caller.recordName)
    }
    return query
  }
}

extension FieldValue {
  fileprivate func naming(_ user: String) -> FieldValue {
    switch self {
    case .string(let name): return CloudServer.meansCaller(name) ? .string(user) : self
    case .reference(var reference):
      if CloudServer.meansCaller(reference.recordName) { reference.recordName = user }
      return .reference(reference)
    case .list(let type, let elements): return .list(type, elements.map { $0.naming(user) })
    default: return self
    }
  }
}

/// What a filter or an order looks at.
public enum QueryKey: Hashable, Sendable {
  case field(String)
  case system(SystemField)

  /// A name under `fieldName`: system fields may be named there too, by their `___` names.
  public init(fieldName name: String) {
    self = SystemField(reserved: name).map { .system($0) } ?? .field(name)
  }

  var isUser: Bool {
    switch self {
    case .system(.createdUserRecordName), .system(.modifiedUserRecordName): true
    default: false
    }
  }
}

/// What the server knows of every record.
public enum SystemField: String, Hashable, Sendable, CaseIterable {
  case recordName, createdTimestamp, createdUserRecordName, modifiedTimestamp, modifiedUserRecordName

  /// The names that begin with three underscores.
  init?(reserved name: String) {
    switch name {
    case "___recordID": self = .recordName
    case "___createTime": self = .createdTimestamp
    case "___createdBy": self = .createdUserRecordName
    case "___modTime": self = .modifiedTimestamp
    case "___modifiedBy": self = .modifiedUserRecordName
    default: return nil
    }
  }

  var kind: SchemaMemory.Kind {
    switch self {
    case .recordName, .createdUserRecordName, .modifiedUserRecordName: .init(.string)
    case .createdTimestamp, .modifiedTimestamp: .init(.timestamp)
    }
  }
}

/// How a filter compares.
public enum Comparator: String, Hashable, Sendable, CaseIterable {
  case equals = "EQUALS"
  case lessThan = "LESS_THAN"
  case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
  case greaterThan = "GREATER_THAN"
  case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
  case near = "NEAR"
  case containsAllTokens = "CONTAINS_ALL_TOKENS"
  case containsAnyTokens = "CONTAINS_ANY_TOKENS"
  case isIn = "IN"
  /// Another name of ``listContainsAny``.
  case containsAny = "CONTAINS_ANY"
  case beginsWith = "BEGINS_WITH"
  case listContains = "LIST_CONTAINS"
  case listContainsAll = "LIST_CONTAINS_ALL"
  case listContainsAny = "LIST_CONTAINS_ANY"
  case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"

  /// Whether `NOT_` may stand in front.
  var canBeNegated: Bool {
    switch self {
    case .equals, .isIn, .beginsWith, .listContains, .listContainsAll, .listContainsAny, .listMemberBeginsWith: true
    default: false
    }
  }
}

/// One condition. A record without the field meets only negated ones.
public struct QueryFilter: Hashable, Sendable {
  public var comparator: Comparator
  public var isNegated: Bool
  public var key: QueryKey
  public var value: FieldValue
  /// Whether the value came with its type.
  public var isTyped: Bool
  /// Metres, for `NEAR`.
  public var distance: Double?

  public init(
    _ comparator: Comparator, isNegated: Bool = false, _ key: QueryKey, _ value: FieldValue, isTyped: Bool = true,
    distance: Double? = nil
  ) {
    self.comparator = comparator
    self.isNegated = isNegated
    self.key = key
    self.value = value
    self.isTyped = isTyped
    self.distance = distance
  }

  /// The comparator of a wire name, and whether it is negated; nil for an unknown name.
  public static func comparator(named name: String) -> (comparator: Comparator, isNegated: Bool)? {
    if let plain = Comparator(rawValue: name) { return (plain, false) }
    guard name.hasPrefix("NOT_"), let plain = Comparator(rawValue: String(name.dropFirst(4))), plain.canBeNegated else {
      return nil
    }
    return (plain, true)
  }
}

/// One order; the first of a query counts most.
public struct QuerySort: Hashable, Sendable {
  public var key: QueryKey
  public var ascending: Bool
  /// Orders by the distance from here.
  public var relativeLocation: Location?

  public init(_ key: QueryKey, ascending: Bool = true, relativeLocation: Location? = nil) {
    self.key = key
    self.ascending = ascending
    self.relativeLocation = relativeLocation
  }
}

// MARK: Stored form

extension RecordQuery {
  /// The query as fields of ``FieldBlob``: what subscriptions keep, and what a marker's fingerprint is made of.
  var encoded: [UInt8] {
    var fields = [Field("type", .string(recordType))]
    for filter in filters {
      fields.append(Field("filter", .string(filter.comparator.rawValue)))
      fields.append(Field(filter.key.storedName, filter.value))
      fields.append(Field("flags", .int64((filter.isNegated ? 1 : 0) | (filter.isTyped ? 2 : 0))))
      if let distance = filter.distance { fields.append(Field("distance", .double(distance))) }
    }
    for order in sort {
      fields.append(Field("sort", .string(order.key.storedName)))
      fields.append(Field("ascending", .int64(order.ascending ? 1 : 0)))
      if let place = order.relativeLocation { fields.append(Field("from", .location(place))) }
    }
    return FieldBlob.encode(Fields(uniqueFields: fields))
  }

  /// The type and the filters of what ``encoded`` gave; orders are of no use to a subscription. Nil for damage.
  init?(encodedFilters bytes: [UInt8]) {
    let stored: Fields
    do { stored = try FieldBlob.decode(bytes) } catch { return nil }
    var rest = stored.storage[...]
    guard case .string(let type)? = rest.popFirst()?.value else { return nil }
    self.init(recordType: type)
    while rest.first?.name == "filter" {
      guard case .string(let name)? = rest.popFirst()?.value, let comparator = Comparator(rawValue: name),
        let operand = rest.popFirst(), let value = operand.value, let key = QueryKey(storedName: operand.name),
        case .int64(let flags)? = rest.popFirst()?.value
      else { return nil }
      var filter = QueryFilter(comparator, isNegated: flags & 1 != 0, key, value, isTyped: flags & 2 != 0)
      if rest.first?.name == "distance", case .double(let distance)? = rest.popFirst()?.value {
        filter.distance = distance
      }
      filters.append(filter)
    }
  }
}

extension QueryKey {
  fileprivate var storedName: String {
    switch self {
    case .field(let name): "f:" + name
    case .system(let field): "s:" + field.rawValue
    }
  }

  fileprivate init?(storedName name: String) {
    let rest = String(name.dropFirst(2))
    if name.hasPrefix("f:") {
      self = .field(rest)
    } else if name.hasPrefix("s:"), let field = SystemField(rawValue: rest) {
      self = .system(field)
    } else {
      return nil
    }
  }
}
