/// Constants of the client, in one place.
enum ClientTuning {
  /// Seconds until a connection must stand.
  static let connectTimeout = 10
  /// Seconds without a byte in either direction after which a request is given up.
  static let stallTimeout = 60
  /// Bytes of a decompressed answer; a page of 1,000 records of 1 MB would not fit, but no server sends one.
  static let maximalAnswer = 256 << 20
  /// Bytes from which a request body is compressed.
  static let compressionThreshold = 1024
  /// Entries that a Cairn server is asked for per page.
  static let preferredPage = 1000
  /// Bytes of an asset that are fetched: they are held in memory.
  static let maximalAsset = 256 << 20
  /// Bytes of a notification.
  static let maximalNotification = 64 << 10
  /// How often the bytes of an asset are sent or fetched, without a wait, when the connection breaks; then the engine
  /// waits.
  static let assetTries = 3
  /// Characters of an unreadable answer that are shown.
  static let excerpt = 60
}
