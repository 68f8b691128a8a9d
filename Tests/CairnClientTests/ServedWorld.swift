import CairnClient
import CairnEngine
import CairnRecords
import CairnServer
import CairnServerCore
import CairnTesting

/// The ways to reach a server that must be indistinguishable (DESIGN section 8, conformance).
enum Route: String, CaseIterable, Sendable {
  case inProcess, loopback
}

/// A server with one user, and connections to it by either route.
final class ServedWorld {
  private enum Server {
    case inProcess(InMemoryServer)
    case loopback(RunningServer, token: String)
  }

  private let server: Server

  init(_ route: Route, settings: ServerSettings = ServerSettings()) throws {
    switch route {
    case .inProcess: server = .inProcess(try InMemoryServer(settings: settings))
    case .loopback:
      let storage = try SQLiteStorage.inMemory()
      let token = try UserAdministration(storage: storage).add("anna").token
      let address = ListenAddress(port: 0)
      server = .loopback(
        try RunningServer.start(storage: storage, listen: address, settings: settings), token: token)
    }
  }

  deinit {
    if case .loopback(let server, _) = server { server.stop() }
  }

  /// Another connection of the user.
  func database() throws -> any CloudDatabase {
    switch server {
    case .inProcess(let server):
      return try server.cloud(user: "anna", limits: CloudLimits(entriesPerRequest: 1000))
    case .loopback(let server, let token):
      return WebServicesDatabase(ServiceOptions(server: try ServerURL(parsing: server.url), token: token))
    }
  }
}
