import CPostgres
import Foundation
import ProcessSupport
import Synchronization

/// A PostgreSQL of its own for tests: in a temporary folder, reached by a socket in that folder, gone with this process
/// however that ends. Its data need not survive the machine, so it does not wait for a disk.
public final class PostgresCluster: Sendable {
  /// The one that the tests of a process share.
  public static func shared() throws -> PostgresCluster { try sharedCluster.get() }

  private static let sharedCluster = Result { try PostgresCluster() }

  private let folder: String
  private let programs: String
  private let server = Mutex<Supervised?>(nil)
  private let counter = Atomic<Int>(0)

  /// Makes a cluster and starts it.
  public init() throws {
    programs = try PostgresCluster.findPrograms()
    // Paths of sockets are short, and the user who runs the server must be able to reach the folder.
    let base = FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
    folder = "\(base)/cairn-pg-\(UUID().uuidString.prefix(8))"
    try run(
      """
      mkdir -m 755 "$FOLDER" && \(Self.owner.isEmpty ? "true" : "chown \(Self.owner) \"$FOLDER\"")
      \(prefix) "$BIN/initdb" -D "$FOLDER/data" -U cairn -A trust -E UTF8 --locale=C --no-sync > "$FOLDER.log" 2>&1 \
        || { cat "$FOLDER.log" >&2; exit 1; }
      rm -f "$FOLDER.log"
      printf 'local all locked scram-sha-256\\nlocal all all trust\\n' > "$FOLDER/data/pg_hba.conf"
      """)
    try start()
  }

  deinit {
    server.withLock { $0 = nil }
    // Its supervisor removes it too, after the server's end.
    try? FileManager.default.removeItem(atPath: folder)
  }

  // MARK: The server

  /// Starts it, again after ``kill()``, and waits until it takes connections.
  ///
  /// After a kill the new one ends at once as long as a process of the old one still works; so it is started until it
  /// stays, as a service manager would do.
  public func start() throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      try server.withLock { server in
        if server?.isRunning() != true { server = try Supervised(script(), environment) }
      }
      let connection = PQconnectdb(url("postgres"))
      defer { PQfinish(connection) }
      if PQstatus(connection) == CONNECTION_OK { return }
      guard ContinuousClock.now < deadline else {
        let log = (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? ""
        throw StoreSupportFailure("PostgreSQL does not start: \(String(cString: PQerrorMessage(connection)))\(log)")
      }
      // Another process's state has no event to wait for here; the condition and its limit are above.
      usleep(20_000)
    }
  }

  /// Ends it with SIGKILL, and what it has started too.
  public func kill() throws {
    let file = try String(contentsOfFile: folder + "/data/postmaster.pid", encoding: .utf8)
    guard let line = file.split(separator: "\n").first, let identifier = pid_t(line), identifier > 1 else {
      throw StoreSupportFailure("PostgreSQL has no number")
    }
    _ = Foundation.kill(identifier, SIGKILL)
    server.withLock { $0?.waitForEnd() }
  }

  /// The address of a database.
  public func url(_ database: String, user: String = "cairn") -> String {
    "postgres://\(user)@/\(database)?host=\(folder)"
  }

  /// Makes an empty database and returns its address.
  public func makeDatabase() throws -> String {
    let name = "t\(counter.wrappingAdd(1, ordering: .relaxed).newValue)"
    try execute("CREATE DATABASE \(name)")
    return url(name)
  }

  /// Removes a database with whoever uses it.
  public func dropDatabase(_ url: String) {
    let name = Self.name(url)
    // Nothing depends on it: the cluster goes with the process.
    _ = try? execute("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
  }

  private static func name(_ url: String) -> String {
    String(url.split(separator: "?")[0].split(separator: "/").last ?? "")
  }

  /// Copies a database as it is now; whoever uses it loses the connection.
  public func copyDatabase(_ source: String, to target: String) throws {
    let (source, target) = (Self.name(source), Self.name(target))
    try execute("DROP DATABASE IF EXISTS \(target) WITH (FORCE)")
    // A connection may come back between the two statements: then once more.
    for attempt in 1... {
      try execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(source)'")
      do { return _ = try execute("CREATE DATABASE \(target) TEMPLATE \(source)") } catch {
        guard attempt < 50 else { throw error }
      }
    }
  }

  /// Runs one statement and returns the first column of its rows.
  @discardableResult
  public func execute(_ sql: String, in database: String = "postgres") throws -> [String] {
    let connection = PQconnectdb(database.hasPrefix("postgres://") ? database : url(database))
    defer { PQfinish(connection) }
    let result = PQexec(connection, sql)
    defer { PQclear(result) }
    let status = PQresultStatus(result)
    guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
      throw StoreSupportFailure("\(sql): \(String(cString: PQerrorMessage(connection)))")
    }
    return (0..<PQntuples(result)).map { String(cString: PQgetvalue(result, $0, 0)) }
  }

  // MARK: Programs

  private var environment: [String: String] { ["FOLDER": folder, "BIN": programs] }

  /// PostgreSQL refuses to run as root.
  private static let owner = getuid() == 0 ? "postgres" : ""
  private var prefix: String { Self.owner.isEmpty ? "" : "setpriv --reuid=postgres --regid=postgres --clear-groups" }

  /// Runs until its standard input ends, which it does with this process, or until the server ends by itself.
  private func script() -> String {
    """
    trap '' INT TERM HUP
    exec 3<&0
    rm -f "$FOLDER/data/postmaster.pid"
    (trap - INT TERM HUP; exec \(prefix) "$BIN/postgres" -D "$FOLDER/data" -c listen_addresses= \
      -c unix_socket_directories="$FOLDER" -c fsync=off -c full_page_writes=off -c max_connections=400 \
      -c shared_buffers=64MB -c autovacuum=off -c log_min_messages=fatal -c deadlock_timeout=200ms \
      < /dev/null > "$FOLDER/log" 2>&1 3<&-) &
    server=$!
    (cat <&3 > /dev/null; kill -QUIT $server 2> /dev/null) &
    reader=$!
    wait $server
    if kill $reader 2> /dev/null; then exit 0; fi
    rm -rf "$FOLDER"
    """
  }

  private func run(_ script: String) throws {
    let result = try RunningProcess("/bin/sh", ["-euc", script], environment: environment).waitUntilExit()
    guard result.status == 0 else { throw StoreSupportFailure("PostgreSQL can't be set up: \(result.error)") }
  }

  private static func findPrograms() throws -> String {
    let files = FileManager.default
    var folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    for base in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
      // A folder that is not there has nothing in it.
      let versions = (try? files.contentsOfDirectory(atPath: base)) ?? []
      folders += versions.sorted().reversed().map { "\(base)/\($0)/bin" }
    }
    guard
      let found = folders.first(where: {
        files.isExecutableFile(atPath: $0 + "/initdb") && files.isExecutableFile(atPath: $0 + "/postgres")
      })
    else { throw StoreSupportFailure("there is no PostgreSQL (initdb, postgres): run scripts/bootstrap") }
    return found
  }
}

public struct StoreSupportFailure: Error, CustomStringConvertible {
  public var description: String
  init(_ description: String) { self.description = description }
}

/// A shell script whose standard input is open as long as this object lives, and not longer than this process.
private final class Supervised: Sendable {
  private let process: pid_t
  private let input: Int32
  private let hasEnded = Atomic<Bool>(false)

  init(_ script: String, _ environment: [String: String]) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw StoreSupportFailure("no pipe") }
    // Other processes that this one starts must not keep it open.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    let variables = ProcessInfo.processInfo.environment.merging(environment) { _, given in given }
    let arguments = ["/bin/sh", "-c", script]
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    var strings: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in words + strings { free(pointer) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, "/bin/sh", &actions, nil, &words, &strings)
    close(ends[0])
    guard code == 0 else {
      close(ends[1])
      throw StoreSupportFailure("/bin/sh can't be started")
    }
    process = identifier
    input = ends[1]
  }

  func isRunning() -> Bool {
    if !hasEnded.load(ordering: .relaxed), waitpid(process, nil, WNOHANG) == process {
      hasEnded.store(true, ordering: .relaxed)
    }
    return !hasEnded.load(ordering: .relaxed)
  }

  func waitForEnd() {
    if !hasEnded.exchange(true, ordering: .relaxed) { waitpid(process, nil, 0) }
  }

  deinit {
    close(input)
    waitForEnd()
  }
}
