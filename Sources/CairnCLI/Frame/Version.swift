/// The version of this package, as `cairn --version` prints it.
enum Version {
  static let current = "0.1.0"
}
