import CairnRecords

/// The keys of records that are about sharing (web-services sections 6 and 12).
extension JSONReader {
  /// Reads the value of `key` if it is about sharing; otherwise leaves it and returns false.
  mutating func readSharingKey(
    _ key: JSONKey, into sharing: inout RecordSharing?, zone: ZoneID
  ) throws(WireError) -> Bool {
    var value = sharing ?? RecordSharing()
    switch key {
    case "createShortGUID": value.createsShortGUID = try readFlag()
    case "shortGUID": value.shortGUID = try readOptionalString()
    case "forRecord": value.root = try readRoot()
    case "publicPermission":
      value.publicPermission = try readOptionalString().map { SharePermission(rawValue: $0.uppercased()) ?? .unknown }
    case "participants": value.participants = try readParticipants()
    case "share":
      if try readNull() { break }
      let reference = try readReference()
      value.share = RecordID(name: reference.recordName, zone: reference.zone ?? zone)
    case "owner": value.owner = try readNull() ? nil : readParticipant()
    case "currentUserParticipant": value.currentUserParticipant = try readNull() ? nil : readParticipant()
    default: return false
    }
    if value != RecordSharing() { sharing = value }
    return true
  }

  private mutating func readRoot() throws(WireError) -> RecordSharing.Root? {
    if try readNull() { return nil }
    var root = RecordSharing.Root(name: "")
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "recordName": root.name = try readOptionalString() ?? ""
      case "recordChangeTag": root.changeTag = try readOptionalString().map { ChangeTag($0) }
      default: try skip()
      }
    }
    return root
  }

  private mutating func readParticipants() throws(WireError) -> [ShareParticipant]? {
    if try readNull() { return nil }
    var found: [ShareParticipant] = []
    try beginArray()
    while try nextElement() { found.append(try readParticipant()) }
    return found
  }

  /// Reads a participant. What is absent is what an invitation means: a user who may read.
  mutating func readParticipant() throws(WireError) -> ShareParticipant {
    var participant = ShareParticipant(UserIdentity())
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "type":
        if let name = try readOptionalString() { participant.kind = .init(rawValue: name.uppercased()) ?? .unknown }
      case "permission":
        if let name = try readOptionalString() {
          participant.permission = SharePermission(rawValue: name.uppercased()) ?? .unknown
        }
      case "acceptanceStatus":
        if let name = try readOptionalString() { participant.status = .init(rawValue: name.uppercased()) ?? .unknown }
      case "userIdentity": if try !readNull() { participant.identity = try readIdentity() }
      default: try skip()
      }
    }
    return participant
  }

  mutating func readIdentity() throws(WireError) -> UserIdentity {
    var identity = UserIdentity()
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "userRecordName": identity.userRecordName = try readOptionalString()
      case "lookupInfo": if try !readNull() { identity.lookup = try readLookup() }
      case "nameComponents":
        if try readNull() { break }
        try beginObject()
        while let key = try nextKey() {
          switch key {
          case "givenName": identity.givenName = try readOptionalString()
          case "familyName": identity.familyName = try readOptionalString()
          default: try skip()
          }
        }
      default: try skip()
      }
    }
    return identity
  }

  /// Reads `{emailAddress, phoneNumber or userRecordName}`. Nil where it holds none of them.
  mutating func readLookup() throws(WireError) -> UserLookup? {
    var found: UserLookup?
    try beginObject()
    while let key = try nextKey() {
      switch key {
      case "emailAddress": if let text = try readOptionalString(), !text.isEmpty { found = .emailAddress(text) }
      case "phoneNumber": if let text = try readOptionalString(), !text.isEmpty { found = found ?? .phoneNumber(text) }
      case "userRecordName":
        if let text = try readOptionalString(), !text.isEmpty { found = found ?? .userRecordName(text) }
      default: try skip()
      }
    }
    return found
  }
}

extension JSONWriter {
  /// Writes what a record's answer says about sharing, after its other keys.
  mutating func sharingKeys(_ sharing: RecordSharing, _ style: WireStyle) {
    if let share = sharing.share {
      key("share")
      beginObject()
      pair("recordName", share.name)
      key("zoneID")
      answeredZoneID(share.zone, style)
      endObject()
    }
    if let guid = sharing.shortGUID { pair("shortGUID", guid) }
    if let root = sharing.root {
      key("forRecord")
      beginObject()
      pair("recordName", root.name)
      if let tag = root.changeTag { pair("recordChangeTag", tag.rawValue) }
      endObject()
    }
    if sharing.createsShortGUID { pair("createShortGUID", true) }
    if let permission = sharing.publicPermission { pair("publicPermission", permission.rawValue) }
    if let participants = sharing.participants {
      key("participants")
      beginArray()
      for one in participants { participant(one) }
      endArray()
    }
    if let owner = sharing.owner {
      key("owner")
      participant(owner)
    }
    if let current = sharing.currentUserParticipant {
      key("currentUserParticipant")
      participant(current)
    }
  }

  mutating func participant(_ participant: ShareParticipant) {
    beginObject()
    pair("type", participant.kind.rawValue)
    pair("permission", participant.permission.rawValue)
    pair("acceptanceStatus", participant.status.rawValue)
    key("userIdentity")
    identity(participant.identity)
    endObject()
  }

  mutating func identity(_ identity: UserIdentity) {
    beginObject()
    if let name = identity.userRecordName { pair("userRecordName", name) }
    if identity.givenName != nil || identity.familyName != nil {
      key("nameComponents")
      beginObject()
      if let name = identity.givenName { pair("givenName", name) }
      if let name = identity.familyName { pair("familyName", name) }
      endObject()
    }
    if let lookup = identity.lookup {
      key("lookupInfo")
      beginObject()
      switch lookup {
      case .emailAddress(let text): pair("emailAddress", text)
      case .phoneNumber(let text): pair("phoneNumber", text)
      case .userRecordName(let text): pair("userRecordName", text)
      }
      endObject()
    }
    endObject()
  }
}
