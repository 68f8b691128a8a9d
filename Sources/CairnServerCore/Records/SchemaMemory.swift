import CairnRecords

/// By record type and field, the present type of values that may be stored under an earlier one.
typealias YieldedTypes = [String: [String: SchemaMemory.Kind]]

extension Fields {
  /// Reads stored values as the types that have taken the place of provisional ones. A value that does not fit stays.
  mutating func adapt(_ types: [String: SchemaMemory.Kind]?) {
    guard let types else { return }
    for field in self {
      guard let kind = types[field.name], let value = field.value, value.kind != kind else { continue }
      if let read = value.read(as: kind) { set(field.name, read) }
    }
  }
}

/// The types of the fields of one container and environment, learned from writes (web-services section 7).
struct SchemaMemory: Sendable {
  /// A field's type: of its value, or of its list's elements.
  struct Kind: Hashable, Sendable {
    var type: FieldType
    var isList: Bool

    var name: String { type.rawValue + (isList ? "_LIST" : "") }

    init(_ type: FieldType, isList: Bool = false) {
      self.type = type
      self.isList = isList
    }

    init?(name: String) {
      let isList = name.hasSuffix("_LIST")
      guard let type = FieldType(rawValue: isList ? String(name.dropLast(5)) : name) else { return nil }
      self.init(type, isList: isList)
    }
  }

  private struct Known {
    var kind: Kind
    var isFirm: Bool
    var hasYielded: Bool
  }

  /// The fields of one record type in the order in which they were learned. Records mostly have their fields in that
  /// order, so a look-up tries the same place first and rarely hashes.
  private struct TypeSchema {
    private(set) var names: [String] = []
    var known: [Known] = []
    private var places: [String: Int] = [:]

    func place(of name: String, near hint: Int) -> Int? {
      if hint < names.count, names[hint] == name { return hint }
      return places[name]
    }

    subscript(name: String) -> Known? {
      get { places[name].map { known[$0] } }
      set {
        guard let newValue else { return }
        if let place = places[name] {
          known[place] = newValue
        } else {
          places[name] = names.count
          names.append(name)
          known.append(newValue)
        }
      }
    }
  }

  private var types: [String: TypeSchema] = [:]
  /// Fields whose stored values may be of an earlier type, and the type under which they are answered.
  private(set) var yielded: YieldedTypes = [:]
  /// What changed since the memory was loaded or ``takeChanges()`` was called.
  private var changes: [StoredSchemaField] = []
  let isLocked: Bool

  init(_ stored: [StoredSchemaField], isLocked: Bool) {
    self.isLocked = isLocked
    for field in stored {
      if field.field.isEmpty {
        types[field.recordType] = types[field.recordType] ?? TypeSchema()
      } else if let kind = Kind(name: field.kind) {
        types[field.recordType, default: TypeSchema()][field.field] = Known(
          kind: kind, isFirm: field.isFirm, hasYielded: field.hasYielded)
        if field.hasYielded { yielded[field.recordType, default: [:]][field.field] = kind }
      }
    }
  }

  /// The type of a field; nil while no record has it.
  func kind(of field: String, in recordType: String) -> Kind? { types[recordType]?[field]?.kind }

  mutating func takeChanges() -> [StoredSchemaField] {
    defer { changes = [] }
    return changes
  }

  /// Reads every field as its known type and learns the unknown ones.
  ///
  /// - Parameter untyped: names of the fields that came without a type.
  /// - Throws: `badRequest` naming field and both types.
  mutating func admit(_ fields: inout Fields, of recordType: String, untyped: [String]) throws(CloudError) {
    if types[recordType] == nil {
      guard !isLocked || recordType == RecordSharing.shareType else {
        throw CloudError(.badRequest, "Unknown record type '\(recordType)' in a locked schema")
      }
      types[recordType] = TypeSchema()
      changes.append(StoredSchemaField(recordType: recordType, field: "", kind: "", isFirm: true, hasYielded: false))
    }
    if untyped.isEmpty, isAsKnown(fields, of: recordType) { return }
    for i in fields.indices {
      guard let value = fields[i].value else { continue }
      let name = fields[i].name
      let isTyped = untyped.isEmpty || !untyped.contains(name)
      if let read = try admit(value, name, of: recordType, isTyped: isTyped) { fields.set(name, read) }
    }
  }

  /// Whether typed fields all have their firm types: the common case, in which nothing is learned or read anew.
  private func isAsKnown(_ fields: Fields, of recordType: String) -> Bool {
    guard let type = types[recordType] else { return false }
    for i in fields.storage.indices {
      guard let value = fields.storage[i].value else { continue }
      guard let place = type.place(of: fields.storage[i].name, near: i) else { return false }
      guard type.known[place].isFirm, type.known[place].kind == value.kind else { return false }
    }
    return true
  }

  /// The value under another type, or nil when it stays as it is.
  private mutating func admit(
    _ value: FieldValue, _ field: String, of recordType: String, isTyped: Bool
  ) throws(CloudError) -> FieldValue? {
    let kind = value.kind
    guard let known = types[recordType]?[field] else {
      if !isTyped, value.isEmptyList { return nil }
      guard !isLocked || recordType == RecordSharing.shareType else {
        throw CloudError(.badRequest, "Unknown field '\(field)' of '\(recordType)' in a locked schema")
      }
      learn(kind, isFirm: isTyped || value.isOnlyText, field, recordType)
      return nil
    }
    if isTyped {
      if known.kind == kind {
        if !known.isFirm { learn(kind, isFirm: true, field, recordType) }
        return nil
      }
      guard !known.isFirm, SchemaMemory.yields(known.kind, to: kind) else { throw mismatch(field, kind, known.kind) }
      learn(kind, isFirm: true, field, recordType)
      return nil
    }
    if known.kind == kind {
      if !known.isFirm, value.isOnlyText { learn(kind, isFirm: true, field, recordType) }
      return nil
    }
    if !known.isFirm, known.kind.type == .int64, kind == Kind(.double, isList: known.kind.isList) {
      learn(kind, isFirm: false, field, recordType)
      return nil
    }
    guard let read = value.read(as: known.kind) else { throw mismatch(field, kind, known.kind) }
    return read
  }

  private mutating func learn(_ kind: Kind, isFirm: Bool, _ field: String, _ recordType: String) {
    let before = types[recordType]?[field]
    let hasYielded = before.map { $0.hasYielded || $0.kind != kind } ?? false
    if hasYielded { yielded[recordType, default: [:]][field] = kind }
    types[recordType]?[field] = Known(kind: kind, isFirm: isFirm, hasYielded: hasYielded)
    changes.append(
      StoredSchemaField(
        recordType: recordType, field: field, kind: kind.name, isFirm: isFirm, hasYielded: hasYielded))
  }

  /// Whether a provisional type gives way to an explicit one (rule 4): only where stored values can be read so.
  private static func yields(_ known: Kind, to kind: Kind) -> Bool {
    guard known.isList == kind.isList else { return false }
    return switch (known.type, kind.type) {
    case (.string, .bytes), (.string, .encryptedBytes), (.int64, .double), (.int64, .timestamp), (.double, .timestamp):
      true
    default: false
    }
  }

  private func mismatch(_ field: String, _ given: Kind, _ known: Kind) -> CloudError {
    CloudError(.badRequest, "Field '\(field)' is of type \(known.name), not \(given.name)")
  }
}

extension FieldValue {
  var kind: SchemaMemory.Kind {
    switch self {
    case .string: .init(.string)
    case .int64: .init(.int64)
    case .double: .init(.double)
    case .bytes: .init(.bytes)
    case .timestamp: .init(.timestamp)
    case .reference: .init(.reference)
    case .asset: .init(.asset)
    case .location: .init(.location)
    case .list(let type, _): .init(type, isList: true)
    // ENCRYPTED_BYTES is BYTES that the client marked; other encrypted values keep their own type.
    case .encrypted(let inner):
      if case .bytes = inner { .init(.encryptedBytes) } else { inner.kind }
    }
  }

  var isEmptyList: Bool {
    if case .list(_, let elements) = self { elements.isEmpty } else { false }
  }

  /// Whether this is text that cannot be bytes. A STRING yields to nothing but bytes: after such a value it is firm
  /// (rule 4).
  var isOnlyText: Bool {
    switch self {
    case .string(let text): Base64.decode(text) == nil
    case .list(.string, let elements): elements.contains { $0.isOnlyText }
    case .encrypted(let inner): inner.isOnlyText
    default: false
    }
  }

  /// The value as another type, as JSON would be read under it; nil when it does not fit.
  func read(as kind: SchemaMemory.Kind) -> FieldValue? {
    if kind.isList {
      guard case .list(_, let elements) = self else { return nil }
      var read: [FieldValue] = []
      read.reserveCapacity(elements.count)
      for element in elements {
        let element = element.kind.type == kind.type ? element : element.read(as: .init(kind.type))
        guard let element else { return nil }
        read.append(element)
      }
      return .list(kind.type, read)
    }
    switch (self, kind.type) {
    case (.encrypted(let inner), _):
      if kind.type == .encryptedBytes { return inner.read(as: .init(.bytes)).map { .encrypted($0) } }
      return inner.read(as: kind).map { .encrypted($0) }
    case (.string(let text), .bytes): return Base64.decode(text).map { .bytes($0) }
    case (.string(let text), .encryptedBytes): return Base64.decode(text).map { .encrypted(.bytes($0)) }
    case (.bytes, .encryptedBytes): return .encrypted(self)
    // Numbers may travel as strings (web-services section 7, `numbersAsStrings`).
    case (.string(let text), .int64): return Int64(text).map { .int64($0) }
    case (.string(let text), .double): return Double(text).flatMap { $0.isFinite ? .double($0) : nil }
    case (.string(let text), .timestamp): return Double(text).flatMap { $0.isFinite ? .timestamp($0) : nil }
    case (.double(let real), .int64): return Int64(exactly: real).map { .int64($0) }
    case (.int64(let integer), .double): return .double(Double(integer))
    case (.int64(let integer), .timestamp): return .timestamp(Double(integer))
    case (.double(let real), .timestamp): return .timestamp(real)
    default: return self.kind == kind ? self : nil
    }
  }
}
