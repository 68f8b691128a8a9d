import CairnRecords
import CairnServerCore
import CairnWire

/// Web-services section 11.
extension Endpoint {
  static let subscriptionsList = Endpoint("subscriptions/list", allowsGet: true, Set(DatabaseKind.allCases)) {
    (call) throws(CloudError) in
    answer(try call.server.subscriptions(call.caller, call.scope).map(entry), call)
  }

  static let subscriptionsLookup = Endpoint("subscriptions/lookup", Set(DatabaseKind.allCases)) {
    (call) throws(CloudError) in
    let request = try call.request(SubscriptionsLookupRequest.self)
    let results = try call.server.lookupSubscriptions(call.caller, call.scope, request.ids, call.features.options)
    return answer(zip(request.ids, results).map { id, result in entry(id, result.map { $0 }) }, call)
  }

  static let subscriptionsModify = Endpoint("subscriptions/modify", Set(DatabaseKind.allCases)) {
    (call) throws(CloudError) in
    let request = try call.request(SubscriptionsModifyRequest.self)
    let operations = request.operations.map { operation -> SubscriptionOperation in
      let wire = operation.subscription
      if operation.kind == .delete { return .delete(wire.id) }
      do throws(CloudError) {
        let subscription = try subscription(wire)
        return operation.kind == .create ? .create(subscription) : .update(subscription)
      } catch { return .failed(wire.id, error) }
    }
    let results = try call.server.modifySubscriptions(call.caller, call.scope, operations, call.features.options)
    return answer(zip(operations, results).map { entry($0.id, $1) }, call)
  }

  private static func subscription(_ wire: WireSubscription) throws(CloudError) -> Subscription {
    guard let kind = Subscription.Kind(rawValue: wire.type) else {
      throw CloudError(.badRequest, "A subscriptionType is query, zone or database")
    }
    var subscription = Subscription(id: wire.id, kind: kind, firesOnce: wire.firesOnce)
    for name in wire.firesOn {
      guard let event = Subscription.Event(name: name) else {
        throw CloudError(.badRequest, "firesOn holds create, update and delete")
      }
      subscription.firesOn.insert(event)
    }
    switch kind {
    case .database: break
    case .zone:
      guard let zone = wire.zone else { throw CloudError(.badRequest, "A zone's subscription needs a zoneID") }
      subscription.zone = zone
    case .query:
      guard let query = wire.query else { throw CloudError(.badRequest, "A query's subscription needs a query") }
      guard !subscription.firesOn.isEmpty else {
        throw CloudError(.badRequest, "A query's subscription needs firesOn")
      }
      subscription.query = try recordQuery(query)
      if wire.zoneWide == false { subscription.zone = wire.zone ?? .defaultZone }
    }
    subscription.content = JSONValue.object(wire.members).encoded
    return subscription
  }

  private static func entry(_ id: String, _ result: Result<Subscription?, CloudError>) -> SubscriptionsAnswer.Entry {
    switch result {
    case .success(let subscription?): entry(subscription)
    case .success(nil): .deleted(id)
    case .failure(let error): .failed(id, error)
    }
  }

  private static func entry(_ subscription: Subscription) -> SubscriptionsAnswer.Entry {
    var members: [JSONMember] = []
    // What was stored was written from a tree; damage shows as a subscription without settings.
    if case .object(let stored)? = try? JSONValue(parsing: subscription.content) { members = stored }
    return .subscription(
      id: subscription.id, zone: subscription.zone,
      zoneWide: subscription.kind == .query ? subscription.zone == nil : nil, members: members)
  }

  private static func answer(_ entries: [SubscriptionsAnswer.Entry], _ call: EndpointCall) -> HTTPResponse {
    call.response { SubscriptionsAnswer.encode(entries, style: call.style(), into: &$0) }
  }
}

/// Addresses for notifications. The calls belong to a container, whatever database stands in their path.
extension Endpoint {
  static let tokensCreate = Endpoint("tokens/create", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(CourierMessage.self)
    let token = try call.server.addCourier(call.caller, call.scope, clientID: call.clientID)
    let environment = request.apnsEnvironment.isEmpty ? call.scope.environment.rawValue : request.apnsEnvironment
    let answer = CourierMessage(
      environment: environment, token: token, url: call.base + RequestHandler.courierPath + token)
    return call.response { answer.encode(into: &$0) }
  }

  static let tokensRegister = Endpoint("tokens/register", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(CourierMessage.self)
    try call.server.joinCourier(request.apnsToken, call.caller, call.scope)
    return call.response { CourierMessage().encode(into: &$0) }
  }
}
