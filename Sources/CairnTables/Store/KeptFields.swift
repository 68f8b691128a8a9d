import CairnRecords
import CairnSQLite
import CairnWire

/// Fields of a record that have no column here, kept as they came so that they can be sent back untouched (tables V1).
struct KeptFields: Hashable, Sendable {
  /// By field name on the server.
  private(set) var fields = Fields()
  /// Values that do not fit their field, by name, as tagged text (tables 1.5).
  private(set) var tagged: [String: String] = [:]

  init() {}

  var isEmpty: Bool { fields.isEmpty && tagged.isEmpty }

  /// The names of all fields, ascending.
  var names: [String] {
    let own = fields.map { $0.name.hasPrefix(Self.assetMark) ? String($0.name.dropFirst()) : $0.name }
    return Set(own).union(tagged.keys).sorted()
  }

  /// Takes one field over from another set.
  mutating func take(_ name: String, from other: KeptFields?) {
    guard let other else { return }
    if let text = other.tagged[name] { tagged[name] = text }
    for key in [name, Self.assetMark + name] where other.fields.contains(name: key) {
      fields.set(key, other.fields[key])
    }
  }

  /// The set without one field; nil when nothing is left.
  func without(_ name: String) -> KeptFields? {
    var rest = KeptFields()
    for other in names where other != name { rest.take(other, from: self) }
    return rest.isEmpty ? nil : rest
  }

  /// What decides a tie between two kept values: their text on the wire, which is alike on every device.
  func cell(_ name: String) -> MergeCell {
    if let text = tagged[name] { return .value(.text(text)) }
    guard let value = fields[name] else { return .null }
    return .value(.blob(RecordText.encode(Self.carrier(Fields(uniqueFields: [Field(name, value)])))))
  }

  // MARK: Content of records

  mutating func add(_ field: RecordContent.KeptField) {
    if let text = field.tagged { tagged[field.name] = text }
    if let asset = field.asset {
      fields.set(Self.assetMark + field.name, .asset(asset))
    }
    if field.tagged == nil || field.field != nil { fields.set(field.name, field.field) }
  }

  func field(_ name: String, clock: FieldClock) -> RecordContent.KeptField {
    var asset: Asset?
    if case .asset(let found)? = fields[Self.assetMark + name] { asset = found }
    return RecordContent.KeptField(name: name, clock: clock, field: fields[name], tagged: tagged[name], asset: asset)
  }

  /// Before the name of a field whose value lies in an asset of its own; no field name begins so.
  private static let assetMark = "."

  // MARK: Storing

  private static let zone = ZoneID(name: "kept")

  private static func carrier(_ fields: Fields) -> Record {
    Record(id: RecordID(name: "kept", zone: zone), type: "kept", fields: fields)
  }

  /// The text in `cairn_record.kept`: a record whose fields are the kept ones; tagged values have the prefix `t.`,
  /// NULL, which records leave out, `n.`, others `f.`.
  func json() -> String {
    var all = Fields()
    for field in fields {
      if let value = field.value {
        all.append("f." + field.name, value)
      } else {
        all.append("n." + field.name, .int64(1))
      }
    }
    for name in tagged.keys.sorted() { all.append("t." + name, tagged[name].map(FieldValue.string)) }
    return String(decoding: RecordText.encode(Self.carrier(all)), as: UTF8.self)
  }

  init(json: String) throws {
    let record = try RecordText.decode(Array(json.utf8), in: Self.zone)
    for field in record.fields {
      let name = String(field.name.dropFirst(2))
      if field.name.hasPrefix("t."), case .string(let text)? = field.value {
        tagged[name] = text
      } else {
        fields.set(name, field.name.hasPrefix("n.") ? nil : field.value)
      }
    }
  }
}
