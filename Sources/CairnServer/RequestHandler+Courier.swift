import CairnRecords
import CairnServerCore
import CairnWire
import Dispatch

/// The address that is polled for notifications (web-services section 11). It is the only credential. A client that
/// waits costs a suspended connection and no thread.
extension RequestHandler {
  static let courierPath = "/courier/"

  func handleCourier(_ request: HTTPRequest, _ answer: @escaping Answer) {
    guard request.method == "GET" else {
      return answer(.failure(CloudError(.badRequest, "Notifications are fetched with GET")))
    }
    let hub = server.notifications
    let token = String(request.path.dropFirst(RequestHandler.courierPath.utf8.count))
    let poll = server.poll(token, isAbandoned: request.hasLeft) { result in
      answer(RequestHandler.response(result))
    }
    guard let poll else { return }
    // libmicrohttpd does not notice that a client has left while its connection is suspended: the clock ends its poll,
    // or the first news, which then waits for the next one.
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(server.settings.pollHold)) {
      hub.timeOut(poll)
    }
  }

  private static func response(_ result: PollAnswer) -> Result<ResponseMaker, CloudError> {
    switch result {
    case .nothing: .success({ HTTPResponse(status: 204, copying: []) })
    case .unknown: .failure(CloudError(.notFound, "There is no such address for notifications: call tokens/create"))
    case .busy: .failure(CloudError(.tryAgainLater, "Notifications are not given out now", retryAfter: 5))
    case .notification(let name, let notification):
      .success({
        var writer = JSONWriter(capacity: 256)
        NotificationMessage(
          name: name, container: notification.container, subscription: notification.subscription,
          zone: notification.zone,
          record: notification.change.map { ($0.record, Int64($0.event.rawValue)) }
        ).encode(into: &writer)
        return HTTPResponse(status: 200, body: writer)
      })
    }
  }
}
