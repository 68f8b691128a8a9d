#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// How many files and connections the process may have open.
enum OpenFiles {
  /// Files that are not connections: the store, its readers, what is uploaded and downloaded.
  static let besideConnections: rlim_t = 200

  /// Makes room for so many connections, as far as the operator's limit goes.
  ///
  /// - Throws: when that limit is lower.
  static func allow(connections: Int) throws(ServerStartError) {
    let wanted = rlim_t(connections) + besideConnections
    var limit = rlimit()
    #if canImport(Glibc)
      let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let files = RLIMIT_NOFILE
    #endif
    guard getrlimit(files, &limit) == 0, limit.rlim_cur < wanted else { return }
    guard limit.rlim_max >= wanted else {
      throw ServerStartError(
        "\(connections) connections need \(wanted) open files, and this process may have \(limit.rlim_max)",
        remedy: "raise the limit (ulimit -n, LimitNOFILE= of systemd), or give fewer --connections")
    }
    limit.rlim_cur = wanted
    guard setrlimit(files, &limit) == 0 else {
      throw ServerStartError(
        "the number of open files can't be raised to \(wanted)", remedy: "raise it outside, with ulimit -n")
    }
  }
}
