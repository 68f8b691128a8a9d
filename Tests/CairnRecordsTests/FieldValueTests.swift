import Testing

@testable import CairnRecords

struct FieldValueTests {
  @Test("values are equal by their bytes: two spellings of one character differ, as do 0 and -0")
  func bytes() {
    #expect(FieldValue.string("\u{e9}") != .string("e\u{301}"))
    #expect(FieldValue.list(.string, [.string("\u{e9}")]) != .list(.string, [.string("e\u{301}")]))
    #expect(FieldValue.encrypted(.string("\u{e9}")) != .encrypted(.string("e\u{301}")))
    #expect(FieldValue.double(0) != .double(-0.0))
    #expect(FieldValue.double(.nan) == .double(.nan))
    #expect(FieldValue.int64(1) != .double(1))
    let values: [FieldValue] = [.string("a"), .int64(1), .double(1), .bytes([1]), .list(.int64, [])]
    for value in values { #expect(Set(values).contains(value)) }
  }
}
