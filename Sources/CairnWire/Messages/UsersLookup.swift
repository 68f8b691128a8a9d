import CairnRecords

/// The body of users/discover (`lookupInfos`) and of users/lookup (`users`).
public struct UsersLookupRequest: WireRequest, Hashable, Sendable {
  public var lookups: [UserLookup] = []

  public init() {}

  public mutating func read(_ key: JSONKey, _ reader: inout JSONReader) throws(WireError) {
    switch key {
    case "lookupInfos", "users":
      if try reader.readNull() { return }
      try reader.beginArray()
      while try reader.nextElement() {
        guard let lookup = try reader.readLookup() else {
          throw reader.error(.value, "a user is looked up by emailAddress, phoneNumber or userRecordName")
        }
        lookups.append(lookup)
      }
    default: try reader.skip()
    }
  }
}

/// The answer to users/discover and users/lookup: who was found, and by what.
public enum UsersAnswer {
  public static func encode(_ users: [UserIdentity], into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("users")
    writer.beginArray()
    for user in users { writer.identity(user) }
    writer.endArray()
    writer.endObject()
  }
}
