import CairnRecords
import CairnServerCore
import CairnWire

/// Web-services section 12. The calls are about a container, whichever of its databases holds what is shared.
extension Endpoint {
  static let recordsResolve = Endpoint("records/resolve", [.public]) { (call) throws(CloudError) in
    let request = try call.request(ShortGUIDsRequest.self)
    return answer(
      request, try call.server.resolveShares(call.caller, call.scope, queries(request), call.features.options), call)
  }

  static let recordsAccept = Endpoint("records/accept", [.public]) { (call) throws(CloudError) in
    let request = try call.request(ShortGUIDsRequest.self)
    return answer(
      request, try call.server.acceptShares(call.caller, call.scope, queries(request), call.features.options), call)
  }

  private static func queries(_ request: ShortGUIDsRequest) -> [ShareQuery] {
    request.items.map { ShareQuery(guid: $0.guid, wantsRoot: $0.wantsRoot, rootKeys: $0.rootKeys) }
  }

  private static func answer(
    _ request: ShortGUIDsRequest, _ results: [Result<ResolvedShare, CloudError>], _ call: EndpointCall
  ) -> HTTPResponse {
    let scope = call.scope
    return call.response { writer in
      SharesAnswer.encode(
        zip(request.items, results).map { item, result in
          (
            item.guid,
            result.map { found in
              ShareMetadata(
                guid: found.guid, container: scope.container, environment: scope.environment.rawValue,
                databaseScope: found.database.rawValue.uppercased(), zone: found.zone, rootName: found.rootName,
                root: found.root, share: found.share, owner: found.owner, participant: found.participant)
            }
          )
        }, style: call.style(), into: &writer)
    }
  }
}
