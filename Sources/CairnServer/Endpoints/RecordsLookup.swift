import CairnRecords
import CairnServerCore
import CairnWire

extension Endpoint {
  static let recordsLookup = Endpoint("records/lookup", Set(DatabaseKind.allCases)) { (call) throws(CloudError) in
    let request = try call.request(LookupRequest.self)
    let style = call.style(numbersAsStrings: request.numbersAsStrings)
    let zones = request.items.map { request.zone ?? $0.zone ?? .defaultZone }
    var results = [Result<Record, CloudError>?](repeating: nil, count: request.items.count)
    var token: ChangeToken?
    let main = request.zone ?? zones.first ?? .defaultZone
    try call.server.checkCount(request.items.count, call.features.options)
    for zone in Set(zones).union([main]).sorted() {
      let indices = zones.indices.filter { zones[$0] == zone }
      let outcome = try call.server.lookup(
        call.caller, call.scope, in: zone,
        indices.map { LookupItem(name: request.items[$0].name, desiredKeys: request.items[$0].desiredKeys) },
        desiredKeys: request.desiredKeys, wantsToken: request.getCurrentSyncToken || call.wantsToken,
        call.features.options)
      for (i, record) in zip(indices, outcome.records) { results[i] = record }
      if zone == main { token = outcome.token }
    }
    return call.response(results.count * 400 + 256) { writer in
      writer.beginRecords()
      for (item, result) in zip(request.items, results) {
        switch result {
        case .success(let record): writer.record(record, style)
        case .failure(let error): writer.failedRecord(item.name, error, style)
        case nil: break
        }
      }
      writer.endRecords(syncToken: token)
    }
  }
}
