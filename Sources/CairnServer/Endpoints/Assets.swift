import CairnRecords
import CairnServerCore
import CairnWire

/// Web-services section 11, assets.
extension Endpoint {
  static let assetsUpload = Endpoint("assets/upload", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(AssetsRequest.self)
    let targets = try call.server.uploadTargets(
      call.caller, call.scope, in: request.zone, request.items.map(field), call.features.options)
    return call.response(targets.count * 300 + 64) { writer in
      AssetsUploadAnswer.encode(
        targets.map {
          AssetsUploadAnswer.Target(recordName: $0.recordName, fieldName: $0.fieldName, url: call.base + $0.path)
        }, into: &writer)
    }
  }

  static let assetsRereference = Endpoint("assets/rereference", Set(DatabaseKind.allCases)) {
    (call) throws(CloudError) in
    let request = try call.request(AssetsRequest.self)
    let results = try call.server.rereference(
      call.caller, call.scope, in: request.zone ?? .defaultZone, request.items.map(field), call.features.options)
    return call.response(results.count * 500 + 64) { writer in
      AssetsRereferenceAnswer.encode(Array(zip(request.items, results)), style: call.style(), into: &writer)
    }
  }

  private static func field(_ item: AssetsRequest.Item) -> AssetField {
    AssetField(recordName: item.recordName, recordType: item.recordType, fieldName: item.fieldName)
  }
}
