import CairnRecords
import CairnTesting
import Testing

@testable import CairnTables

struct ClockScanTests {
  private static let names = ["a", "b\"c", "note", "zz"]
  private static let quoted = names.map { Array("\"\($0.replacing("\"", with: "\\\""))\"".utf8) }

  private func scan(_ text: String) -> [FieldClock]? {
    var result = Array(repeating: RecordContent.never, count: 4)
    var scan = ClockScan()
    var text = text
    return text.withUTF8 { scan.run($0, Self.quoted, [2, 0, 3, 1], &result) } ? result : nil
  }

  @Test("clocks by column; columns without a clock stay as they are")
  func own() {
    #expect(scan(#"{"9":["a","zz"],"20":["note"]}"#) == [-1, 9, 9, 20])
    #expect(scan(#"{"0":["b\"c"]}"#) == [0, -1, -1, -1])
  }

  @Test(
    "any other form is left to the reader of JSON",
    arguments: [
      "", "{", "{}", #"{"9":[]}"#, #"{"9":["zz","a"]}"#, #"{"9":["a","a"]}"#, #"{"9":["a"],"9":["zz"]}"#,
      #"{"9":["a"],"20":["a"]}"#, #"{"20":["a"],"9":["zz"]}"#, #"{"9":["other"]}"#, #"{"9": ["a"]}"#, #"{"9":["a"]} "#,
      #"{"9":["a"],}"#, #"{"-9":["a"]}"#, #"{"":["a"]}"#, #"{"99999999999999999":["a"]}"#, #"{"9":["a"]"#, #"{"9":["a"#,
    ])
  func others(text: String) {
    #expect(scan(text) == nil)
  }
}
