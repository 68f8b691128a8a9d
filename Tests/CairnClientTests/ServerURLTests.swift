import Testing

@testable import CairnClient

@Suite("Server addresses")
struct ServerURLTests {
  @Test(
    "accepted and normalised",
    arguments: [
      ("http://127.0.0.1:8080", "http://127.0.0.1:8080"), (" https://Sync.Example.org/ \n", "https://sync.example.org"),
      ("HTTPS://a/b//", "https://a/b"), ("http://[::1]:99/x", "http://[::1]:99/x"),
      ("http://localhost:", "http://localhost"),
    ])
  func accepts(text: String, normal: String) throws {
    #expect(try ServerURL(parsing: text).description == normal)
  }

  @Test(
    "refused with what is wrong",
    arguments: [
      ("", "empty"), ("sync.example.org", "lacks its scheme"), ("localhost:8080", "lacks its scheme"),
      ("no url", "not a URL"),
      ("ftp://a", "not a way"), ("://a", "not a URL"), ("http://", "no host"), ("http:///x", "no host"),
      ("http://a:0", "not a port"), ("http://a:x", "not a port"), ("http://a:70000", "not a port"),
      ("http://u:p@a", "user name"), ("http://a?token=x", "query"), ("http://a#b", "query"),
      ("http://a b", "not a host"),
      ("http://[::1", "lacks a ]"), ("http://a/ä", "percent-encode"), ("http://ä.org", "not a host"),
      ("http://a:1:2", "not a port"),
    ])
  func refuses(text: String, part: String) {
    let error = #expect(throws: ServerURL.ParseError.self) { try ServerURL(parsing: text) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "no error")")
  }

  @Test("loopback is recognised")
  func loopback() throws {
    for (text, expected) in [
      ("http://127.0.0.1", true), ("http://127.1.2.3:5", true), ("http://localhost", true), ("http://[::1]", true),
      ("http://127.example.org", false), ("https://example.org", false),
    ] { #expect(try ServerURL(parsing: text).isLoopback == expected, "\(text)") }
  }
}
