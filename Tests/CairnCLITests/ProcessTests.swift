import Foundation
import ProcessSupport
import Testing

/// The built binary, from outside.
@Suite struct ProcessTests {
  @Test func theBinaryPrintsItsVersion() throws {
    let result = try Programs.runCairn(["--version"])
    #expect(result == .init(status: 0, output: "cairn 0.1.0\n", error: ""))
  }

  @Test func wrongUsageIsExitCodeTwo() throws {
    let result = try Programs.runCairn(["nothing", "--json"])
    #expect(result.status == 2)
    #expect(result.output.isEmpty)
    #expect(result.error == "cairn: unknown command nothing: cairn help lists the commands\n")
    #expect(try Programs.runCairn([]).status == 2)
  }

  @Test func theShellIsTheOtherProgram() throws {
    let folder = try TemporaryFolder()
    let file = folder.file("a.db")
    #expect(try Programs.runSQL("CREATE TABLE t(x); INSERT INTO t VALUES (7);", in: file).status == 0)
    #expect(try Programs.runSQL("SELECT x FROM t;", in: file).output == "7\n")
    #expect(try Programs.runSQL("SELECT y FROM t; SELECT 1;", in: file).output.isEmpty)
  }

  @Test func aProcessThatHangsIsKilledAndReported() throws {
    let process = try RunningProcess("/bin/sh", ["-c", "echo ready; exec sleep 100"])
    #expect(try process.waitForLine("rea") == "dy")
    #expect(throws: ProcessFailure.self) { try process.waitUntilExit(limit: .milliseconds(50)) }
    #expect(!process.isRunning())
    let ended = try RunningProcess("/bin/sh", ["-c", "kill -TERM $$"])
    #expect(try ended.waitUntilExit().status == -15)
    #expect(throws: ProcessFailure.self) { try ended.waitForLine("never") }
  }
}
