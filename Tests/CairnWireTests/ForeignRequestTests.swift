import CairnRecords
import Testing

@testable import CairnWire

/// What other clients and servers write, and Cairn must read.
@Suite("Requests and answers of others")
struct ForeignRequestTests {
  func modify(_ text: String) throws -> ModifyRequest { try ModifyRequest(decoding: Array(text.utf8)) }

  /// The fields of one operation, given as the text of `fields`.
  func fields(_ text: String) throws -> (Fields, [UntypedField], String?) {
    let request = try modify(
      #"{"operations":[{"record":{"recordName":"a","fields":\#(text)},"operationType":"update"}]}"#)
    let operation = try #require(request.operations.first)
    return (operation.operation.record.fields, operation.untyped, operation.problem)
  }

  @Test("an empty body is {}, defaults hold, unknown keys are ignored")
  func defaults() throws {
    let empty = try modify("")
    #expect(empty.operations.isEmpty && empty.atomic && !empty.numbersAsStrings && empty.desiredKeys == nil)
    let odd = try modify(#" {"zzz":{"a":[1,{"b":null}]},"atomic":false,"numberAsStrings":true,"atomic":null} "#)
    #expect(odd.atomic && odd.numbersAsStrings)
    #expect(throws: WireError.self) { try modify("[]") }
  }

  @Test("web-services section 12: parent null is told apart from no parent, in a request")
  func noParent() throws {
    for (text, removes) in [(#","parent":null"#, true), ("", false), (#","parent":{"recordName":"p"}"#, false)] {
      let request = try modify(
        #"{"operations":[{"record":{"recordName":"a"\#(text)},"operationType":"update"}]}"#)
      let record = try #require(request.operations.first).operation.record
      #expect((record.sharing?.removesParent ?? false) == removes)
      #expect(record.parent == (text.contains("\"p\"") ? "p" : nil))
    }
  }

  @Test("W14: null in three spellings, and as null itself")
  func nulls() throws {
    let (fields, untyped, problem) = try fields(
      #"{"a":{"value":null},"b":{},"c":{"type":"STRING","value":null},"d":{"value":null,"type":"INT64"},"e":null}"#)
    #expect(fields == ["a": nil, "b": nil, "c": nil, "d": nil, "e": nil])
    #expect(untyped.isEmpty && problem == nil)
  }

  @Test("the type may follow the value; booleans are INT64; both number spellings; encrypted in any order")
  func orders() throws {
    let (fields, untyped, problem) = try fields(
      #"""
      {"a":{"value":"AAE=","type":"BYTES"},"b":{"value":"12","type":"INT64"},"c":{"type":"INT64","value":true},
      "d":{"value":"1.5","type":"DOUBLE"},"e":{"isEncrypted":true,"value":"x","type":"STRING"},
      "f":{"value":["1",2],"type":"INT64_LIST"},"g":{"type":"ENCRYPTED_BYTES","value":"AA"},
      "h":{"value":{"recordName":"r","zoneID":{"zoneName":"Z","ownerName":"_o"}},"type":"REFERENCE"},
      "i":{"value":-62135596800000,"type":"TIMESTAMP"},"j":{"type":"STRING","isEncrypted":false,"value":"a"}}
      """#)
    #expect(
      fields == [
        "a": .bytes([0, 1]), "b": .int64(12), "c": .int64(1), "d": .double(1.5), "e": .encrypted(.string("x")),
        "f": .list(.int64, [.int64(1), .int64(2)]), "g": .encrypted(.bytes([0])),
        "h": .reference(Reference(recordName: "r", zone: ZoneID(name: "Z", owner: "_o"))),
        "i": .timestamp(-62_135_596_800_000), "j": .string("a"),
      ])
    #expect(untyped.isEmpty && problem == nil)
  }

  @Test("rule 3 of the schema memory: untyped values are kept with what they look like")
  func untyped() throws {
    let (fields, untyped, problem) = try fields(
      #"""
      {"s":{"value":"AAE="},"i":{"value":2},"d":{"value":2.5},"b":{"value":true},"r":{"value":{"recordName":"x"}},
      "l":{"value":{"latitude":1,"longitude":2}},"a":{"value":{"receipt":"q","size":1}},"x":{"value":[2,3]},
      "e":{"value":[]},"t":{"value":["a"],"type":"LIST"},"o":{"value":true,"type":"BOOLEAN"},
      "u":{"value":1,"type":"GADGET"},"q":{"value":{"foo":1}}}
      """#)
    #expect(fields.count == 13 && fields.allSatisfy { $0.value == nil } && problem == nil)
    let kinds = untyped.map { $0.value.inferredKind?.description ?? "-" }
    #expect(
      kinds == [
        "STRING", "INT64", "DOUBLE", "INT64", "REFERENCE", "LOCATION", "ASSETID", "INT64_LIST", "-", "STRING_LIST",
        "INT64",
        "INT64", "-",
      ])
    #expect(
      untyped.map(\.value.isAcceptable) == [
        true, true, true, true, true, true, true, true, true, true, true, false, true,
      ])
    let text = try #require(untyped.first?.value)
    #expect(text.value(as: FieldKind(.bytes)) == .bytes([0, 1]))
    #expect(text.value(as: FieldKind(.string)) == .string("AAE="))
    #expect(text.value(as: FieldKind(.int64)) == nil)
    #expect(untyped[1].value.value(as: FieldKind(.timestamp)) == .timestamp(2))
    #expect(untyped[2].value.value(as: FieldKind(.int64)) == nil)
    #expect(untyped[3].value.value(as: FieldKind(.int64)) == .int64(1))
    #expect(untyped[8].value.value(as: FieldKind(.string, isList: true)) == .list(.string, []))
    #expect(
      UntypedValue(json: .string("x"), isEncrypted: true).value(as: FieldKind(.string)) == .encrypted(.string("x")))
  }

  @Test("W16: a value that does not fit its type concerns its entry only, and says which field")
  func mismatch() throws {
    for value in [
      #"{"type":"INT64","value":"x"}"#, #"{"value":1.5,"type":"INT64"}"#, #"{"type":"BYTES","value":"??"}"#,
      #"{"type":"STRING","value":{"a":[1]}}"#, #"{"type":"INT64_LIST","value":[1,[2,{"x":3}],"y"]}"#,
      #"{"type":"LOCATION","value":{"latitude":1}}"#, #"{"value":[{"recordName":"a"},7],"type":"REFERENCE_LIST"}"#,
    ] {
      let (fields, _, problem) = try fields(#"{"a":\#(value),"b":{"type":"STRING","value":"kept"}}"#)
      #expect(fields == ["a": nil, "b": .string("kept")], "\(value)")
      #expect(problem?.hasPrefix("field a: ") == true, "\(value)")
    }
  }

  @Test("equal names: the last counts, also among many fields")
  func repetitions() throws {
    #expect(
      try fields(#"{"a":{"type":"INT64","value":1},"b":{},"a":{"type":"INT64","value":2}}"#).0 == [
        "a": .int64(2), "b": nil,
      ])
    let many = (0..<40).map { #""f\#($0 % 30)":{"type":"INT64","value":\#($0)}"# }.joined(separator: ",")
    let result = try fields("{\(many)}").0
    #expect(result.count == 30 && result["f0"] == .int64(30) && result["f29"] == .int64(29))
  }

  @Test("zone of an operation: the request's, else the record's, else the default zone")
  func operationZone() throws {
    let operations =
      #"[{"operationType":"create","record":{"zoneID":{"zoneName":"R"},"recordName":"a"}},{"operationType":"delete","record":{"recordName":"b"}}]"#
    let own = try modify(#"{"operations":\#(operations)}"#)
    #expect(own.operations.map(\.operation.record.id.zone.name) == ["R", "_defaultZone"])
    let all = try modify(#"{"operations":\#(operations),"zoneID":{"zoneName":"Q","ownerName":"__defaultOwner__"}}"#)
    #expect(all.operations.allSatisfy { $0.operation.record.id.zone == ZoneID(name: "Q") })
  }

  @Test("operations without type or record, or with an unknown type, fail the request")
  func badOperations() {
    for text in [
      #"{"operations":[{"record":{}}]}"#, #"{"operations":[{"operationType":"create"}]}"#,
      #"{"operations":[{"operationType":"upsert","record":{}}]}"#, #"{"operations":{}}"#, #"{"operations":[1]}"#,
    ] { #expect(throws: WireError.self, "\(text)") { try modify(text) } }
  }

  @Test("a missing record name and type are empty; a delete carries its time")
  func missingNames() throws {
    let request = try modify(
      #"{"operations":[{"operationType":"create","record":{"recordType":"T"}},{"operationType":"forceDelete","record":{"recordName":"a","modified":{"timestamp":7}}}]}"#
    )
    #expect(request.operations[0].operation.record.id.name.isEmpty)
    #expect(request.operations[1].operation.deleteTime == 7 && request.operations[1].operation.record.type.isEmpty)
  }

  @Test("changes/zone: top-level keys are defaults whatever their order; records/changes is one entry at top level")
  func zoneChanges() throws {
    let text =
      #"{"zones":[{"zoneID":{"zoneName":"A"},"syncToken":"a"},{"zoneID":{"zoneName":"B"},"resultsLimit":5,"reverse":true}],"syncToken":"","resultsLimit":9,"desiredKeys":["k"],"numbersAsStrings":true}"#
    let request = try ZoneChangesRequest(decoding: Array(text.utf8))
    #expect(request.zones.map(\.resultsLimit) == [9, 5])
    #expect(request.zones.map(\.syncToken) == ["a", nil])
    #expect(request.zones.map(\.desiredKeys) == [["k"], ["k"]])
    #expect(request.zones.map(\.reverse) == [nil, true] && request.numbersAsStrings)
    let old = try ZoneChangesRequest(decoding: Array(#"{"syncToken":"t","zoneID":{"zoneName":"A"}}"#.utf8))
    #expect(old.zones == [ZoneChangesQuery(zone: ZoneID(name: "A"), syncToken: "t")])
  }

  @Test("W27: zones/lookup takes bare zone IDs and wrapped ones; zones/changes both token names")
  func zoneShapes() throws {
    let lookup = try ZonesLookupRequest(
      decoding: Array(#"{"zones":[{"zoneName":"A","ownerRecordName":"_o"},{"zoneID":{"zoneName":"B"}}]}"#.utf8))
    #expect(lookup.zones == [ZoneID(name: "A", owner: "_o"), ZoneID(name: "B")])
    #expect(throws: WireError.self) { try ZonesLookupRequest(decoding: Array(#"{"zones":[{}]}"#.utf8)) }
    #expect(try DatabaseChangesRequest(decoding: Array(#"{"metaSyncToken":"m"}"#.utf8)).syncToken == "m")
    #expect(try DatabaseChangesRequest(decoding: Array(#"{"syncToken":""}"#.utf8)).syncToken == nil)
  }

  @Test("rules 6 and 7 for answers: unknown keys, unknown types, tombstones with null type, own zone in references")
  func answers() throws {
    let text = #"""
      {"zones":[{"zoneID":{"zoneName":"Z","ownerRecordName":"_u","zoneType":"REGULAR_CUSTOM_ZONE"},"records":[
      {"recordName":"t","recordType":null,"deleted":true,"modified":{"timestamp":9}},
      {"recordName":"r","recordType":"T","recordChangeTag":"1","new":[{}],"fields":{"n":{"value":1,"type":"GADGET"},
      "u":{"value":[],"type":"UNKNOWN_LIST"},"l":{"value":["a"],"type":"LIST"},"p":{"value":"x"},
      "own":{"value":{"recordName":"x","action":"NONE","zoneID":{"zoneName":"Z","ownerRecordName":"_u"}},"type":"REFERENCE"},
      "far":{"value":{"recordName":"x","zoneID":{"zoneName":"Y","ownerRecordName":"_u"}},"type":"REFERENCE"}},
      "created":{"timestamp":1.7,"userRecordName":null,"deviceID":3},"zoneID":{"zoneName":"Z","ownerRecordName":"_u"}}],
      "syncToken":"s","moreComing":false,"extra":1}],"uuid":"x"}
      """#
    let zone = ZoneID(name: "Z")
    let page = try ZoneChangesAnswer.decode(Array(text.utf8), zone: zone, trustsDeletionTimes: false).get()
    #expect(page.deletions == [RecordDeletion(id: RecordID(name: "t", zone: zone))])
    #expect(
      page.records.first?.fields == [
        "l": .list(.string, [.string("a")]), "p": .string("x"), "own": .reference(Reference(recordName: "x")),
        "far": .reference(Reference(recordName: "x", zone: ZoneID(name: "Y", owner: "_u"))),
      ])
    #expect(page.records.first?.created == RecordStamp(timestamp: 1))
  }

  @Test("answers that do not belong to the question are refused")
  func wrongAnswers() {
    let zone = ZoneID(name: "Z")
    for text in [
      #"{}"#, #"{"zones":[]}"#, #"{"zones":[{"zoneID":{"zoneName":"Y"},"records":[],"syncToken":"s"}]}"#,
      #"{"zones":[{"records":[]}]}"#, #"{"zones":[{"syncToken":"s"}]}"#,
      #"{"zones":[{"records":[{}],"syncToken":"s"}]}"#,
    ] {
      #expect(throws: WireError.self, "\(text)") {
        try ZoneChangesAnswer.decode(Array(text.utf8), zone: zone, trustsDeletionTimes: false)
      }
    }
    let operation = RecordOperation(.create, Record(id: RecordID(name: "a", zone: zone), type: "T"))
    for text in [
      #"{"records":[]}"#, #"{"records":[{"recordName":"b","recordChangeTag":"1"}]}"#,
      #"{"records":[{"recordName":"a"}]}"#,
      #"{"records":[{"recordName":"a","recordChangeTag":"1"},{"recordName":"b"}]}"#,
      #"{"records":[{"recordName":"a","deleted":true}]}"#,
    ] { #expect(throws: WireError.self, "\(text)") { try ModifyAnswer.decode(Array(text.utf8), to: [operation]) } }
  }
}
