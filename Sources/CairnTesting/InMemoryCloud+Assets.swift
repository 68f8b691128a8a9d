import CairnEngine
import CairnRecords
import CairnServerCore

/// Assets, in memory like the rest.
extension InMemoryCloud {
  public func uploadAssets(
    in zone: ZoneID, _ targets: [AssetTarget], bytes: (Int) throws(CloudError) -> [UInt8]
  ) throws(CloudError) -> [Result<Asset, CloudError>] {
    var results: [Result<Asset, CloudError>] = []
    for (index, target) in targets.enumerated() {
      let field = AssetField(recordName: target.record, recordType: target.type, fieldName: target.field)
      guard let place = try core().uploadTargets(caller, scope, [field]).first else { break }
      do throws(CloudError) {
        results.append(.success(try core().upload(try bytes(index), to: place.path)))
      } catch { results.append(.failure(error)) }
    }
    return results
  }

  public func downloadAsset(_ asset: Asset) throws(CloudError) -> [UInt8] {
    guard let path = asset.downloadURL else { throw CloudError(.notFound, "The asset has no address") }
    switch try core().download(String(path.dropFirst(CloudServer.downloadPath.utf8.count))) {
    case .memory(let bytes): return bytes
    case .file: throw CloudError(.internalError, "A server in memory keeps no files")
    }
  }
}
