import Foundation
import Testing

@testable import CairnCLI

@Suite struct OutputTests {
  @Test func jsonKeepsTheOrderAndEscapes() {
    let value: JSONValue = [
      "z": 1, "a": ["\"\\\n\u{1}\u{7f}é\u{1F5FF}", nil, true, .number(0.1), .number(.nan), .number(3)], "m": [:],
    ]
    #expect(
      value.description == #"{"z":1,"a":["\"\\\n\u0001\u007fé🗿",null,true,0.1,null,3.0],"m":{}}"#)
  }

  @Test func jsonIsReadBackByAnotherParser() throws {
    let text = "a\u{0}b\u{2028}\r\n\u{8}/</script>"
    let value: JSONValue = ["k": .string(text), "n": .integer(.min)]
    let object = try JSONSerialization.jsonObject(with: Data(value.description.utf8)) as? [String: Any]
    #expect(object?["k"] as? String == text)
    #expect((object?["n"] as? NSNumber)?.int64Value == .min)
  }

  @Test func onlyOneObjectIsPrinted() {
    let answer = MemorySink()
    let output = Output(json: true, answer: answer, messages: MemorySink())
    output.line("not for programs")
    output.report(["a": 1]) { "text" }
    output.report(["b": 2]) { "text" }
    #expect(answer.text == "{\"a\":1}\n")
  }

  @Test func tablesAlignNumbersRight() {
    var table = TextTable("table", "rows")
    table.add("artists", "7")
    table.add("a\tb", "1200")
    #expect(table.text == "table    rows\nartists     7\na·b      1200\n")
  }

  @Test func aBrokenPipeIsNoFailureAndAFullDiskIs() throws {
    let full = open("/dev/full", O_WRONLY)
    defer { close(full) }
    let sink = DescriptorSink(descriptor: full)
    let output = Output(json: false, answer: sink, messages: MemorySink())
    output.line("text")
    #expect(try #require(output.failure).message.hasPrefix("standard output can't be written (No space left"))

    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    close(ends[0])
    defer { close(ends[1]) }
    signal(SIGPIPE, SIG_IGN)
    let broken = DescriptorSink(descriptor: ends[1])
    broken.write("text")
    #expect(broken.failure == EPIPE)
    #expect(Output(json: false, answer: broken, messages: MemorySink()).failure == nil)
  }

  @Test func progressIsDrawnOnTerminalsAfterOneSecondOnly() {
    let messages = MemorySink()
    var now = 0.0
    let output = Output(json: true, answer: MemorySink(), messages: messages, terminal: Terminal(width: 40))
    var bar = ProgressBar("rows", output, clock: { now })
    now = 0.9
    bar.update(1, of: 10)
    #expect(messages.text.isEmpty)
    now = 1.0
    bar.update(5, of: 10)
    #expect(messages.text == "\rrows [#############--------------] 5/10\u{1b}[K")
    now = 1.05
    bar.update(6, of: 10)
    bar.finish()
    #expect(messages.text.hasSuffix("5/10\u{1b}[K\r\u{1b}[K"))

    let plain = MemorySink()
    var none = ProgressBar("rows", Output(json: false, answer: plain, messages: plain), clock: { now })
    now = 10
    none.update(5, of: 10)
    none.finish()
    #expect(plain.text.isEmpty)
  }

  @Test func progressFitsNarrowTerminals() {
    for width in 0...60 {
      #expect(ProgressBar.line("rows", 123, 456, width: width).count <= max(width, 0))
      #expect(ProgressBar.line("rows", 123, nil, width: width).count <= max(width, 0))
    }
    #expect(ProgressBar.line("rows", 9, 3, width: 60).contains("###] 9/3"))
  }
}
