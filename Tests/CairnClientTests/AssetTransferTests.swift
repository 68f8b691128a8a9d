import CairnEngine
import CairnRecords
import CairnServerCore
import Testing

@testable import CairnClient

/// Assets between the real client and the real server (web-services section 11).
@Suite struct AssetTransferTests {
  private let bytes = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  private let zone = ZoneID(name: "Notes")

  private func save(_ asset: Asset, _ name: String, _ database: any CloudDatabase) throws -> Record {
    let record = Record(id: RecordID(name: name, zone: zone), type: "Note", fields: ["cover": .asset(asset)])
    let outcome = try database.modify(in: zone, [RecordOperation(.forceReplace, record)], atomic: false)[0]
    guard case .saved = outcome else { throw CloudError(.internalError, "\(outcome)") }
    return try database.lookup(in: zone, names: [name])[0].get()
  }

  @Test("W33: what the client uploads it can download", arguments: Route.allCases)
  func roundTrip(_ route: Route) throws {
    let world = try ServedWorld(route)
    let database = try world.database()
    _ = try database.createZones([zone])
    let names = (0..<3).map { "n\($0)" }
    let assets = try database.uploadAssets(
      in: zone, names.map { AssetTarget(record: $0, type: "Note", field: "cover") }
    ) { (index) throws(CloudError) in index == 1 ? [] : bytes }
    for (index, name) in names.enumerated() {
      guard case .asset(let asset)? = try save(assets[index].get(), name, database).fields["cover"] else {
        Issue.record("no asset")
        continue
      }
      #expect(try database.downloadAsset(asset) == (index == 1 ? [] : bytes))
    }
  }

  @Test("W33: an asset over the server's limit fails alone; the caller's own failure too", arguments: Route.allCases)
  func failures(_ route: Route) throws {
    var settings = ServerSettings()
    settings.bytesPerAsset = 1_000
    let world = try ServedWorld(route, settings: settings)
    let database = try world.database()
    let targets = ["a", "b", "c"].map { AssetTarget(record: $0, type: "Note", field: "cover") }
    let results = try database.uploadAssets(in: zone, targets) { (index) throws(CloudError) in
      if index == 1 { throw CloudError(.notFound, "no row") }
      return [UInt8](repeating: 1, count: index == 0 ? 1_001 : 1_000)
    }
    let codes = results.map { (result) -> CloudError.Code? in
      if case .failure(let error) = result { error.code } else { nil }
    }
    #expect(codes == [.badRequest, .notFound, nil])
  }

  @Test("section 7: addresses of assets as servers give them")
  func addresses() throws {
    let secure = try ServerURL(parsing: "https://sync.example.org/x")
    let plain = try ServerURL(parsing: "http://127.0.0.1:1")
    #expect(try AssetURL.checked("https://cdn.example.org/a/${f}?k=1", plain) == "https://cdn.example.org/a/asset?k=1")
    #expect(try AssetURL.checked("http://sync.example.org/asset/1", secure) == "https://sync.example.org/asset/1")
    #expect(try AssetURL.checked("/asset/1", secure) == "https://sync.example.org/x/asset/1")
    #expect(throws: CloudError.self) { try AssetURL.checked("file:///etc/passwd", plain) }
  }
}
