#if Server
  import Foundation
  import ProcessSupport
  import Testing

  /// `cairn demo`, as a user runs it.
  @Suite struct DemoTests {
    @Test func bothFilesAgreeAndNothingIsLeft() throws {
      let folder = try TemporaryFolder()
      let result = try Programs.runCairn(["demo"], environment: ["TMPDIR": folder.path], limit: .seconds(300))
      #expect(result.status == 0, "\(result.output)\(result.error)")
      #expect(result.output.contains("Both files agree."))
      #expect(!result.output.contains("✗"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func anInterruptionCleansUp() throws {
      let folder = try TemporaryFolder()
      let demo = try RunningProcess(Programs.cairn(), ["demo"], environment: ["TMPDIR": folder.path])
      let address = try demo.waitForLine("   listening on http://127.0.0.1:")
      demo.signal(SIGINT)
      let result = try demo.waitUntilExit()
      #expect(result.status == 1)
      #expect(result.error == "cairn: interrupted: run cairn demo again\n")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      let port = try #require(UInt16(address))
      #expect(!Self.accepts(port))
    }

    /// Whether something listens on a port of this machine.
    private static func accepts(_ port: UInt16) -> Bool {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue)
      #else
        let kind = SOCK_STREAM
      #endif
      let descriptor = socket(AF_INET, kind, 0)
      defer { close(descriptor) }
      return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
    }
  }
#endif
