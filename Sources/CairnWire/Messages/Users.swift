/// The signed-in user, as users/caller and users/current answer.
public struct UserAnswer: Hashable, Sendable {
  public var userRecordName: String
  public var firstName: String?
  public var lastName: String?

  public init(userRecordName: String, firstName: String? = nil, lastName: String? = nil) {
    self.userRecordName = userRecordName
    self.firstName = firstName
    self.lastName = lastName
  }

  /// Writes the answer to users/caller: `users[1]` and the same keys at top level (section 2).
  public func encodeCaller(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.key("users")
    writer.beginArray()
    writer.beginObject()
    callerKeys(&writer)
    writer.endObject()
    writer.endArray()
    callerKeys(&writer)
    writer.endObject()
  }

  private func callerKeys(_ writer: inout JSONWriter) {
    writer.pair("userRecordName", userRecordName)
    guard firstName != nil || lastName != nil else { return }
    writer.key("nameComponents")
    writer.beginObject()
    if let firstName { writer.pair("givenName", firstName) }
    if let lastName { writer.pair("familyName", lastName) }
    writer.endObject()
  }

  /// Writes the answer to users/current.
  public func encodeCurrent(into writer: inout JSONWriter) {
    writer.beginObject()
    writer.pair("userRecordName", userRecordName)
    if let firstName { writer.pair("firstName", firstName) }
    if let lastName { writer.pair("lastName", lastName) }
    writer.endObject()
  }

  /// Reads either answer.
  public init(decoding body: [UInt8]) throws(WireError) {
    self = try JSONReader.parse(body) { (reader) throws(WireError) in
      var answer = UserAnswer(userRecordName: "")
      try answer.read(&reader, isTop: true)
      guard !answer.userRecordName.isEmpty else { throw reader.error(.value, "the answer names no user") }
      return answer
    }
  }

  private mutating func read(_ reader: inout JSONReader, isTop: Bool) throws(WireError) {
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch key {
      case "userRecordName": userRecordName = try reader.readOptionalString() ?? userRecordName
      case "firstName", "givenName": firstName = try reader.readOptionalString() ?? firstName
      case "lastName", "familyName": lastName = try reader.readOptionalString() ?? lastName
      case "nameComponents":
        if try reader.kind() == .object { try read(&reader, isTop: false) } else { try reader.skip() }
      case "users":
        guard isTop, try reader.kind() == .array else {
          try reader.skip()
          break
        }
        try reader.beginArray()
        while try reader.nextElement() { try read(&reader, isTop: false) }
      default: try reader.skip()
      }
    }
  }
}
