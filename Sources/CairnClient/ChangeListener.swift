import CairnEngine
import CairnRecords
import CairnWire

/// Waits for a server to say that something has changed (web-services section 11): a subscription to the whole database
/// and a long poll. What it says is a hint; losing all of them loses no data.
///
/// Use ``connect()`` and ``wait()`` from one thread, ``cancel()`` from any.
public final class ChangeListener: Sendable {
  /// All listeners of a database share one subscription.
  static let subscription = "cairn-changes"

  private let service: WebServicesDatabase

  /// Listens with the service and the name of the client that `database` has, so that what it stores itself is not told
  /// to it. Works over connections of its own: a poll that waits holds nothing up.
  ///
  /// Nil where the server has not said, to `database`, that it is one of Cairn's.
  public convenience init?(besides database: WebServicesDatabase) {
    guard database.isCairnServer else { return nil }
    self.init(WebServicesDatabase(besides: database))
  }

  init(_ service: WebServicesDatabase) { self.service = service }

  /// Subscribes and gets an address to poll.
  ///
  /// - Returns: the address; nil when the server does not offer notifications.
  /// - Throws: as the calls of ``WebServicesDatabase``.
  public func connect() throws(CloudError) -> Address? {
    do throws(CloudError) {
      try service.subscribe(Self.subscription)
      return Address(url: try service.addCourier())
    } catch {
      if error.code == .notFound { return nil }
      throw error
    }
  }

  /// Where notifications are polled. Whoever knows it can poll, so it is shown nowhere.
  public struct Address: Sendable, CustomStringConvertible {
    let url: String
    public var description: String { "an address for notifications" }
  }

  /// Waits until something has changed, or until the server has held the poll for long enough.
  ///
  /// - Returns: whether something has changed.
  /// - Throws: `notFound` when the server knows the address no more; what breaks connections; `cancelled`.
  public func wait(at address: Address) throws(CloudError) -> Bool { try service.poll(address.url) }

  /// Ends a wait, and every later call, with `cancelled`.
  public func cancel() { service.cancel() }
}

extension WebServicesDatabase {
  /// Creates a subscription to the whole database, where there is none of that name yet.
  func subscribe(_ id: String) throws(CloudError) {
    let body = Self.encode { SubscriptionsModifyRequest.encodeDatabaseSubscription(id, into: &$0) }
    let failures = try call("subscriptions/modify", body: body) { (body) throws(WireError) in
      try SubscriptionsAnswer.decodeFailures(body)
    }
    for case let error? in failures where error.code != .exists { throw error }
  }

  /// Makes an address for notifications.
  func addCourier() throws(CloudError) -> String {
    let body = Self.encode { CourierMessage(environment: "production", token: "", url: "").encode(into: &$0) }
    let answer = try call("tokens/create", body: body) { (body) throws(WireError) in
      let answer = try CourierMessage(decoding: body)
      guard !answer.webcourierURL.isEmpty else { throw WireError(.value, "the answer has no webcourierURL", at: 0) }
      return answer
    }
    let url = answer.webcourierURL
    if url.hasPrefix("/") { return options.server.description + url }
    // A server behind a proxy that ends TLS may not know that it is reached by https.
    if url.hasPrefix("http://"), options.server.scheme == .https { return "https://" + url.dropFirst(7) }
    guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
      throw CloudError(
        .undecodableAnswer, "the address that \(options.server) gave for notifications is no web address")
    }
    return url
  }

  /// One long poll: true for a notification, false when time was up.
  func poll(_ url: String) throws(CloudError) -> Bool {
    let errors = errors(hiding: String(url.split(separator: "/").last ?? ""))
    var request = HTTPRequest(url: url, headers: ["User-Agent: cairn"], body: nil)
    request.answerLimit = ClientTuning.maximalNotification
    let answer: HTTPResponse
    do throws(HTTPFailure) { answer = try transport.perform(request) } catch { throw errors.error(error) }
    guard (200..<300).contains(answer.status) else { throw errors.error(answer) }
    return answer.status != 204
  }
}
