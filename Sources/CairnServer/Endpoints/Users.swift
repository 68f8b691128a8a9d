import CairnRecords
import CairnServerCore
import CairnWire

extension Endpoint {
  static let usersCaller = Endpoint("users/caller", allowsGet: true, [.public, .private]) { (call) throws(CloudError) in
    let user = try user(call)
    return call.response { user.encodeCaller(into: &$0) }
  }

  static let usersCurrent = Endpoint("users/current", allowsGet: true, [.public, .private]) {
    (call) throws(CloudError) in
    let user = try user(call)
    return call.response { user.encodeCurrent(into: &$0) }
  }

  private static func user(_ call: EndpointCall) throws(CloudError) -> UserAnswer {
    let identity = try call.server.identity(call.caller)
    return UserAnswer(
      userRecordName: call.caller.recordName, firstName: identity.givenName, lastName: identity.familyName)
  }

  /// Called without a body it asks for the people of an address book, which a server does not have: nobody.
  static let usersDiscover = Endpoint("users/discover", allowsGet: true, [.public]) { (call) throws(CloudError) in
    try lookUp(call)
  }

  static let usersLookupEmail = Endpoint("users/lookup/email", [.public]) { (call) throws(CloudError) in
    try lookUp(call)
  }

  static let usersLookupID = Endpoint("users/lookup/id", [.public]) { (call) throws(CloudError) in
    try lookUp(call)
  }

  /// The body is not looked at: there is no address book.
  static let usersLookupContacts = Endpoint("users/lookup/contacts", [.public]) { (call) throws(CloudError) in
    call.response { UsersAnswer.encode([], into: &$0) }
  }

  private static func lookUp(_ call: EndpointCall) throws(CloudError) -> HTTPResponse {
    let request = try call.request(UsersLookupRequest.self)
    let found = try call.server.discover(call.caller, request.lookups, call.features.options)
    return call.response { UsersAnswer.encode(found, into: &$0) }
  }
}
