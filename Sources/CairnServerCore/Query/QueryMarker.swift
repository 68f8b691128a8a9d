import CairnRecords

/// Where a query goes on: `CQ1-` and URL-safe base64 of the fingerprint of the query and the last place that was given.
///
/// It is checked against damage and against use with another query, not against forgery: a forged marker begins the
/// same query elsewhere.
struct QueryMarker: Sendable {
  private static let prefix = "CQ1-"

  var fingerprint: Int64
  var place: QueryPlace

  var text: String {
    var fields = [
      Field("q", .int64(fingerprint)), Field("z", .string(place.zone)), Field("n", .string(place.name)),
    ]
    for (i, value) in place.values.enumerated() { fields.append(Field("\(i)", value)) }
    return Self.prefix + Base64URL.encode(FieldBlob.encode(Fields(uniqueFields: fields)))
  }

  /// - Throws: `badRequest` for what is no marker, and for the marker of another query.
  init(_ text: String, fingerprint: Int64, _ plan: QueryPlan) throws(CloudError) {
    guard text.hasPrefix(Self.prefix), text.utf8.count <= 16_384,
      let bytes = Base64URL.decode(text.utf8.dropFirst(4))
    else { throw CloudError(.badRequest, "Unknown continuationMarker") }
    let fields: Fields
    do { fields = try FieldBlob.decode(bytes) } catch { throw CloudError(.badRequest, "Invalid continuationMarker") }
    guard case .int64(let found)? = fields["q"], case .string(let zone)? = fields["z"],
      case .string(let name)? = fields["n"]
    else { throw CloudError(.badRequest, "Invalid continuationMarker") }
    guard found == fingerprint else {
      throw CloudError(.badRequest, "The continuationMarker belongs to another query")
    }
    self.fingerprint = fingerprint
    place = QueryPlace(zone: zone, name: name, values: plan.orders.indices.map { fields["\($0)"] })
  }

  init(fingerprint: Int64, place: QueryPlace) {
    self.fingerprint = fingerprint
    self.place = place
  }

  /// FNV-1a over the query and where it is asked.
  static func fingerprint(_ query: RecordQuery, zone: String?, incarnation: Int64) -> Int64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ UInt64(bitPattern: incarnation)
    func mix(_ bytes: some Sequence<UInt8>) {
      for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
    mix(query.encoded)
    mix([zone == nil ? 0 : 1])
    mix((zone ?? "").utf8)
    return Int64(bitPattern: hash)
  }
}
