import CairnRecords

/// What users may learn of each other (web-services section 12).
extension CloudServer {
  /// Those of the users looked up who are there and can be discovered, in the order of the request (users/discover,
  /// users/lookup).
  public func discover(
    _ caller: Caller, _ lookups: [UserLookup], _ options: RequestOptions = RequestOptions()
  ) throws(CloudError) -> [UserIdentity] {
    try caller.checkIsUser()
    try checkCount(lookups.count, options)
    return try read { reader in
      try lookups.compactMap { lookup in
        let user: Caller? =
          switch lookup.normalized {
          case .emailAddress(let address): try reader.user(email: address)
          case .userRecordName(let name): try reader.user(recordName: name)
          case .phoneNumber: nil
          }
        guard let user else { return nil }
        var identity = try identity(of: user.key, isKnown: false, reader)
        guard identity.userRecordName != nil else { return nil }
        identity.lookup = lookup
        return identity
      }
    }
  }

  /// The caller, as told to the caller (users/caller).
  public func identity(_ caller: Caller) throws(CloudError) -> UserIdentity {
    try read { reader in
      let profile = try reader.profile(of: caller.key)
      return UserIdentity(
        userRecordName: caller.recordName, givenName: profile.givenName, familyName: profile.familyName,
        lookup: profile.email.map { .emailAddress($0) })
    }
  }
}
