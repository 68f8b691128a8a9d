import CairnRecords
import CairnServerCore
import CairnWire

/// The addresses where bytes of assets are sent and fetched (web-services section 11). The address is the only
/// credential.
extension RequestHandler {
  typealias Answer = @Sendable (Result<ResponseMaker, CloudError>) -> Void

  func isAssetPath(_ path: String) -> Bool {
    path.hasPrefix(CloudServer.downloadPath) || path.hasPrefix(CloudServer.uploadPath)
  }

  func sink(for request: HTTPRequest) throws(CloudError) -> (sink: any BodySink, limit: Int)? {
    guard request.method == "POST" || request.method == "PUT" else { return nil }
    let upload = try server.beginUpload(String(request.path.dropFirst(CloudServer.uploadPath.utf8.count)))
    let type = request.header("content-type") ?? ""
    let sink = try UploadSink(upload, contentType: type) { [self] in noteFailedUpload($0) }
    // Multipart wraps the bytes; what is inside is counted by the upload.
    return (sink, Int(server.settings.bytesPerAsset) + (sink.isMultipart ? 64 << 10 : 0))
  }

  func handleAsset(_ request: HTTPRequest, _ answer: @escaping Answer) {
    do throws(CloudError) {
      if request.path.hasPrefix(CloudServer.uploadPath) { return try finishUpload(request, answer) }
      guard request.method == "GET" || request.method == "HEAD" else {
        throw CloudError(.badRequest, "An asset is fetched with GET")
      }
      let bytes = try server.download(String(request.path.dropFirst(CloudServer.downloadPath.utf8.count)))
      answer(.success({ RequestHandler.response(bytes) }))
    } catch { answer(.failure(error)) }
  }

  private func finishUpload(_ request: HTTPRequest, _ answer: @escaping Answer) throws(CloudError) {
    var sink = request.sink as? UploadSink
    if sink == nil, let made = try self.sink(for: request)?.sink as? UploadSink {
      // A request that came whole, not through a listener.
      try request.body.withUnsafeBufferPointer { (bytes) throws(CloudError) in
        try made.take(UnsafeRawBufferPointer(bytes))
      }
      sink = made
    }
    guard let sink else { throw CloudError(.badRequest, "An asset is sent with POST") }
    try sink.finish { [self] result in
      if case .failure(let error) = result { noteFailedUpload(error) }
      answer(
        result.map { asset in
          {
            var writer = JSONWriter(capacity: 1024)
            AssetReceipt.encode(asset, into: &writer)
            return HTTPResponse(status: 200, body: writer)
          }
        })
    }
  }

  /// The operator learns of a full disk from the log: the client only that it has to wait.
  func noteFailedUpload(_ error: CloudError) {
    if error.code == .tryAgainLater { log("an upload failed: \(error.reason)") }
  }

  /// A client must not take what a user has stored for a page of this server.
  private static let headers = [
    (name: "Content-Type", value: "application/octet-stream"), (name: "X-Content-Type-Options", value: "nosniff"),
    (name: "Content-Disposition", value: "attachment"), (name: "Cache-Control", value: "private"),
  ]

  private static func response(_ bytes: AssetBytes) -> HTTPResponse {
    switch bytes {
    case .memory(let bytes): HTTPResponse(status: 200, headers: headers, copying: bytes)
    case .file(let descriptor, let size): HTTPResponse(status: 200, headers: headers, file: descriptor, size: size)
    }
  }
}

/// The body of an upload on its way into the store: raw, or the part `files` of multipart/form-data.
final class UploadSink: BodySink {
  private let upload: AssetUpload
  private let multipart: MultipartReader?
  private let failed: @Sendable (CloudError) -> Void

  init(
    _ upload: AssetUpload, contentType: String, failed: @escaping @Sendable (CloudError) -> Void
  ) throws(CloudError) {
    self.upload = upload
    self.failed = failed
    multipart = try MultipartReader(contentType: contentType, part: "files")
  }

  var isMultipart: Bool { multipart != nil }

  func take(_ bytes: UnsafeRawBufferPointer) throws(CloudError) {
    do throws(CloudError) {
      guard let multipart else { return try upload.append(bytes) }
      try multipart.read(bytes) { (part) throws(CloudError) in try upload.append(part) }
    } catch {
      failed(error)
      throw error
    }
  }

  func finish(_ completion: @escaping @Sendable (Result<Asset, CloudError>) -> Void) throws(CloudError) {
    if let multipart, !multipart.isComplete {
      throw CloudError(.badRequest, "The body has no whole part 'files'")
    }
    upload.finish(completion)
  }
}
