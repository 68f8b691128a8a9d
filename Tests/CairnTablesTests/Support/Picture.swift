import CairnSQLite
import CairnTables

/// The rows of a device as text, with local integers replaced by record names, so that devices can be compared.
enum Picture {
  /// Every row of every synced table.
  static func of(_ device: Device) throws -> [String: [String]] {
    let database = try SyncedDatabase(path: device.path, time: device.time, randomness: device.randomness)
    return try database.picture()
  }
}
