import CairnEngine
import CairnRecords
import CairnWire

/// Assets (web-services section 11). Addresses of assets carry their own proof: the token never goes there.
extension WebServicesDatabase {
  public func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    _ = try features()
    var results: [Result<Asset, CloudError>] = []
    while results.count < targets.count {
      let chunk = Array(targets[results.count...].prefix(max(1, limits.entriesPerRequest)))
      let addresses = try addresses(in: zone, chunk)
      for (target, address) in zip(chunk, addresses) {
        do throws(CloudError) {
          let content = try bytes(results.count)
          results.append(.success(try upload(content, zone, target, address)))
        } catch {
          if error.concernsEveryAsset { throw error }
          results.append(.failure(error))
        }
      }
    }
    return results
  }

  public func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    guard let text = asset.downloadURL else { throw CloudError(.notFound, "The asset has no address") }
    guard asset.size <= Int64(ClientTuning.maximalAsset) else {
      throw CloudError(.limitExceeded, "The asset of \(asset.size) bytes is too large for this device")
    }
    let url = try AssetURL.checked(text, options.server)
    var request = HTTPRequest(url: url, headers: ["User-Agent: cairn"], body: nil)
    // An error's answer is small; an asset that is larger than its record says is not taken.
    request.answerLimit = max(Int(clamping: asset.size), 64 << 10)
    let answer = try repeating(request)
    guard answer.body.count == asset.size else {
      throw CloudError(
        .serverResponseLost, "\(options.server) sent \(answer.body.count) of \(asset.size) bytes of an asset")
    }
    return answer.body
  }

  private func addresses(in zone: ZoneID, _ targets: [AssetTarget]) throws(CloudError) -> [String] {
    let items = targets.map {
      AssetsRequest.Item(recordName: $0.record, recordType: $0.type, fieldName: $0.field)
    }
    let body = Self.encode { AssetsRequest.encode(zone: zone, items, into: &$0) }
    let answer = try call("assets/upload", body: body) { (body) throws(WireError) in
      let answer = try AssetsUploadAnswer.decode(body)
      guard answer.count == items.count else {
        throw WireError(.value, "another number of upload addresses than were asked for", at: 0)
      }
      return answer
    }
    return answer.map(\.url)
  }

  private func upload(
    _ bytes: [UInt8], _ zone: ZoneID, _ target: AssetTarget, _ address: String
  ) throws(CloudError) -> Asset {
    do throws(CloudError) {
      return try send(bytes, address)
    } catch {
      // Many uploads before this one may have taken longer than the address lives.
      guard error.code == .accessDenied, let fresh = try addresses(in: zone, [target]).first else { throw error }
      return try send(bytes, fresh)
    }
  }

  private func send(_ bytes: [UInt8], _ address: String) throws(CloudError) -> Asset {
    let url = try AssetURL.checked(address, options.server)
    let answer = try repeating(
      HTTPRequest(
        url: url, headers: ["User-Agent: cairn", "Content-Type: application/octet-stream"], body: bytes))
    do throws(WireError) {
      return try AssetReceipt.decode(answer.body)
    } catch {
      throw errors(hiding: url).undecodable(answer, error)
    }
  }

  /// Sending and fetching bytes changes nothing that a second time would harm, so a broken connection is no reason to
  /// give up at once.
  private func repeating(_ request: HTTPRequest) throws(CloudError) -> HTTPResponse {
    let errors = errors(hiding: String(request.url.split(separator: "/").last ?? ""))
    var tries = 0
    while true {
      tries += 1
      switch Result(catching: { () throws(HTTPFailure) in try transport.perform(request) }) {
      case .success(let answer):
        guard (200..<300).contains(answer.status) else { throw errors.error(answer) }
        return answer
      case .failure(let failure):
        guard failure.isBrokenConnection, tries < ClientTuning.assetTries else { throw errors.error(failure) }
      }
    }
  }
}

extension HTTPFailure {
  /// A connection that stood and ended.
  fileprivate var isBrokenConnection: Bool {
    switch self {
    case .notSent, .answerLost: true
    case .notConnected, .answerTooLarge, .cancelled: false
    }
  }
}

/// Addresses of assets as a server gives them.
enum AssetURL {
  /// The address to use.
  ///
  /// A server behind a proxy that ends TLS may not know that it is reached by https: then https it is. An address may
  /// be a path of the server, and may hold a place for a file name (web-services section 7).
  static func checked(_ text: String, _ server: ServerURL) throws(CloudError) -> String {
    let text = text.replacing("${f}", with: "asset")
    if text.hasPrefix("/") { return server.description + text }
    if text.hasPrefix("https://") { return text }
    guard text.hasPrefix("http://") else {
      throw CloudError(.undecodableAnswer, "the address that \(server) gave for an asset is no web address")
    }
    return server.scheme == .https ? "https://" + text.dropFirst(7) : text
  }
}
