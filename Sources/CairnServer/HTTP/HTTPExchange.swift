import CMicrohttpd
import Synchronization

/// Makes an answer when it is about to be sent, so that encoding burdens no thread but that of the connection.
typealias ResponseMaker = @Sendable () -> HTTPResponse

/// One request on its way through libmicrohttpd: collected, handed over, answered.
///
/// ```
/// (request line) ──headers──▶ collecting ──last byte──▶ handed over ──finish()──▶ answered ──queue──▶ (done)
///                               └── not at once: suspended, finish() resumes
/// ```
final class HTTPExchange: Sendable {
  private struct State {
    var body: [UInt8] = []
    /// Takes the body in place of ``body``.
    var sink: (any BodySink)?
    var isOpened = false
    var isHandedOver = false
    var isSuspended = false
    var response: ResponseMaker?
  }

  /// Valid as long as the exchange: libmicrohttpd frees a connection after it has reported the request's end.
  private struct Connection: @unchecked Sendable {
    // Only used in calls that libmicrohttpd allows from other threads, or on its own thread.
    let pointer: OpaquePointer
  }

  private let connection: Connection
  /// Path and query as they were sent.
  let target: String
  let peer: HTTPConnection
  private let state = Mutex(State())
  private let gate: ResumeGate

  init(_ connection: OpaquePointer, _ peer: HTTPConnection, target: String, _ gate: ResumeGate) {
    self.peer = peer
    self.target = target
    self.connection = Connection(pointer: connection)
    self.gate = gate
  }

  // MARK: Collecting

  /// True once, when the headers have come.
  func beginOpening() -> Bool {
    state.withLock { state in
      defer { state.isOpened = true }
      return !state.isOpened
    }
  }

  var bodyCount: Int { state.withLock { $0.body.count } }

  func append(_ bytes: UnsafeRawBufferPointer) { state.withLock { $0.body.append(contentsOf: bytes) } }

  func takeBody() -> [UInt8] {
    state.withLock { state in
      defer { state.body = [] }
      return state.body
    }
  }

  var sink: (any BodySink)? {
    get { state.withLock { $0.sink } }
    set { state.withLock { $0.sink = newValue } }
  }

  // MARK: Handing over

  /// True once, for the call that has to hand the request over; never for a request that is refused already.
  func beginHandingOver() -> Bool {
    state.withLock { state in
      defer { state.isHandedOver = true }
      return !state.isHandedOver && state.response == nil
    }
  }

  /// Takes the answer, from any thread; only the first counts. It is made on libmicrohttpd's thread.
  func finish(_ response: @escaping ResponseMaker) {
    gate.enter()
    defer { gate.leave() }
    state.withLock { state in
      guard state.response == nil else { return }
      state.response = response
      guard state.isSuspended else { return }
      state.isSuspended = false
      MHD_resume_connection(connection.pointer)
    }
  }

  /// The answer, or nil after the connection was suspended until there is one. On libmicrohttpd's thread.
  func responseOrSuspend() -> HTTPResponse? {
    let maker: ResponseMaker? = state.withLock { state in
      if let response = state.response { return response }
      // Under the lock: a resume must not come before the suspension.
      state.isSuspended = true
      MHD_suspend_connection(connection.pointer)
      return nil
    }
    return maker?()
  }
}

/// Counts the threads that may be resuming a connection. A client can have its answer, and the daemon be stopped,
/// before `MHD_resume_connection` has returned on the thread that called it: it would go on in memory that is freed.
final class ResumeGate: Sendable {
  private let inside = Atomic(0)

  func enter() { inside.add(1, ordering: .sequentiallyConsistent) }
  func leave() { inside.subtract(1, ordering: .sequentiallyConsistent) }

  var isEmpty: Bool { inside.load(ordering: .sequentiallyConsistent) == 0 }
}
