import CairnRecords
import CairnServerCore
import CairnWire

extension Endpoint {
  /// Web-services section 5.
  static let recordsModify = Endpoint("records/modify", Set(DatabaseKind.allCases), later: modifyRecords)

  private static func modifyRecords(_ call: EndpointCall, _ answer: @escaping Answer) {
    let request: ModifyRequest
    do { request = try call.request(ModifyRequest.self) } catch { return answer(.failure(error)) }
    var modification = Modification(
      operations: request.operations.map { incoming($0, call.features) }, atomic: request.atomic,
      desiredKeys: request.desiredKeys)
    modification.clientID = call.clientID
    let zone = request.zone ?? request.operations.first?.operation.record.id.zone ?? .defaultZone
    if request.getCurrentSyncToken || call.wantsToken { modification.tokenZone = zone }
    if call.features.feedPosition { modification.positionZone = zone }
    let style = call.style(numbersAsStrings: request.numbersAsStrings)
    call.server.modify(call.caller, call.scope, modification, call.features.options) { result in
      answer(
        result.map { outcome in
          {
            // Fields are limited by the core already.
            call.response(outcome.outcomes.count * 400 + 256) { writer in
              ModifyAnswer.encode(
                outcome.outcomes, style: style, syncToken: outcome.token, position: outcome.position, into: &writer)
            }
          }
        })
    }
  }

  /// The operation with every value read by its looks where it came without type; the core's schema has the last word.
  private static func incoming(_ wire: WireOperation, _ features: Features) -> IncomingOperation {
    var operation = wire.operation
    if !features.tombstoneTime { operation.deleteTime = nil }
    if let problem = wire.problem { return IncomingOperation(operation, failure: CloudError(.badRequest, problem)) }
    var names: [String] = []
    for field in wire.untyped {
      guard let value = inferred(field.value) else {
        return IncomingOperation(
          operation, failure: CloudError(.badRequest, "Field '\(field.name)' has a value of no known type"))
      }
      operation.record.fields.set(field.name, value)
      // BOOLEAN is a type, by another name.
      if field.value.declaredType != "BOOLEAN" { names.append(field.name) }
    }
    return IncomingOperation(operation, untypedFields: names)
  }

  static func inferred(_ value: UntypedValue) -> FieldValue? {
    guard value.isAcceptable else { return nil }
    if let kind = value.inferredKind { return value.value(as: kind) ?? mixedNumbers(value, kind) }
    // An empty array: of which elements, the schema may know.
    if case .array(let elements) = value.json, elements.isEmpty { return .list(.string, []) }
    return nil
  }

  /// `[1, 2.5]`: the first element says INT64, a later one DOUBLE.
  private static func mixedNumbers(_ value: UntypedValue, _ kind: FieldKind) -> FieldValue? {
    kind == FieldKind(.int64, isList: true) ? value.value(as: FieldKind(.double, isList: true)) : nil
  }
}
