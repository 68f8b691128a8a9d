import CairnRecords
import CairnServerCore
import CairnWire

/// Web-services section 10.
extension Endpoint {
  static let zonesList = Endpoint("zones/list", allowsGet: true, Set(DatabaseKind.allCases)) {
    (call) throws(CloudError) in
    answer(try call.server.zones(call.caller, call.scope).map { entry($0) }, call)
  }

  static let zonesLookup = Endpoint("zones/lookup", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(ZonesLookupRequest.self)
    let results = try call.server.lookupZones(call.caller, call.scope, request.zones, call.features.options)
    return answer(zip(request.zones, results).map { entry($0, $1, call) }, call)
  }

  static let zonesModify = Endpoint("zones/modify", [.private]) { (call) throws(CloudError) in
    let request = try call.request(ZonesModifyRequest.self)
    let operations = request.operations.map { operation -> ZoneOperation in
      switch operation {
      case .create(let zone): .create(zone)
      case .delete(let zone): .delete(zone)
      }
    }
    let results = try call.server.modifyZones(
      call.caller, call.scope, operations, call.features.options, clientID: call.clientID)
    return answer(zip(operations, results).map { entry($0.id, $1, call) }, call)
  }

  private static func entry(_ zone: ZoneAnswer) -> ZoneEntry {
    ZoneEntry(zone: zone.id, syncToken: zone.token, isAtomic: zone.atomic, isDeleted: zone.isDeleted)
  }

  private static func entry(
    _ id: ZoneID, _ result: Result<ZoneAnswer, CloudError>, _ call: EndpointCall
  ) -> ZoneEntry {
    switch result {
    case .success(let zone): entry(zone)
    case .failure(let error): ZoneEntry(zone: call.answered(id), error: error)
    }
  }

  private static func answer(_ entries: [ZoneEntry], _ call: EndpointCall) -> HTTPResponse {
    call.response { writer in ZonesAnswer.encode(entries, style: call.style(), into: &writer) }
  }
}
