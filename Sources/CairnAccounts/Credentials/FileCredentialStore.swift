import Foundation

/// Encrypts what a ``FileCredentialStore`` keeps. The product CairnSodium brings one; an app may wrap another library.
public protocol FileEncryption: Sendable {
  func seal(_ plain: Data) throws -> Data
  func open(_ sealed: Data) throws -> Data
}

/// Keeps credentials in files of mode 0600 in a directory of mode 0700, each replaced by rename.
///
/// Without ``FileEncryption`` secrets lie there in clear text, for their owner only: as good as the account of the
/// operating system, no better.
public struct FileCredentialStore: CredentialStore {
  private struct Contents: Codable {
    var userName: String?
    var secret: Data
    var revision: String?
  }

  public let directory: String
  private let encryption: (any FileEncryption)?

  /// Makes the directory where it is missing, and takes everybody else's rights to it.
  public init(directory: URL, encryption: (any FileEncryption)? = nil) throws(CredentialStoreError) {
    self.directory = directory.path
    self.encryption = encryption
    do {
      try FileManager.default.createDirectory(
        atPath: directory.path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.path)
    } catch {
      throw CredentialStoreError("the folder \(directory.path) can't be made private")
    }
    PrivateFile.removeLeftovers(in: directory.path)
  }

  public func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup {
    do {
      let contents = try contents(of: path(key))
      return .found(Credential(userName: contents.userName, secret: contents.secret, revision: contents.revision))
    } catch CocoaError.fileReadNoSuchFile {
      return .absent
    } catch {
      // Unreadable is not absent: nothing is concluded from it (accounts.md A13).
      return .unavailable
    }
  }

  public func replace(
    _ credential: Credential, for key: CredentialKey
  ) throws(CredentialStoreError) -> CredentialWrite {
    let contents = Contents(
      userName: credential.userName, secret: credential.secret, revision: credential.revision)
    do {
      try write(contents, to: path(key))
      return .done
    } catch {
      throw CredentialStoreError("a file in \(directory) can't be written")
    }
  }

  public func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite {
    guard unlink(path(key)) == 0 || errno == ENOENT else {
      throw CredentialStoreError("a file in \(directory) can't be removed")
    }
    PrivateFile.syncDirectory(directory)
    return .done
  }

  /// Encrypts what was stored before there was an encryption. What was cut off is finished by the next run.
  ///
  /// - Returns: how many credentials that were.
  public func sealAll() throws(CredentialStoreError) -> Int {
    var sealed = 0
    do {
      for name in try FileManager.default.contentsOfDirectory(atPath: directory) where name.contains("~") {
        let path = "\(directory)/\(name)"
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        // What is not in clear text is sealed already.
        guard let plain = try? JSONDecoder().decode(Contents.self, from: data) else { continue }
        try write(plain, to: path)
        sealed += 1
      }
    } catch {
      throw CredentialStoreError("a file in \(directory) can't be read or written")
    }
    return sealed
  }

  private func contents(of path: String) throws -> Contents {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    guard let encryption else { return try JSONDecoder().decode(Contents.self, from: data) }
    // Stored before there was an encryption: as it is, until `sealAll`.
    if let plain = try? JSONDecoder().decode(Contents.self, from: data) { return plain }
    return try JSONDecoder().decode(Contents.self, from: encryption.open(data))
  }

  private func write(_ contents: Contents, to path: String) throws {
    var data = try JSONEncoder().encode(contents)
    if let encryption { data = try encryption.seal(data) }
    try PrivateFile.replace(path, with: data)
  }

  /// Writes a file for its owner only, in place of the one that is there; readers see the old or the new.
  public static func writePrivately(_ data: Data, to path: String) throws(CredentialStoreError) {
    do { try PrivateFile.replace(path, with: data) } catch { throw CredentialStoreError("\(path) can't be written") }
  }

  private func path(_ key: CredentialKey) -> String {
    switch key {
    case .account(let scope, let id): "\(directory)/\(PrivateFile.safe(scope.rawValue))~\(id)"
    case .legacy(let id): "\(directory)/legacy~\(id)"
    }
  }
}

/// Files that only their owner may read, replaced by rename.
enum PrivateFile {
  struct Failure: Error {}

  /// Writes a new file with mode 0600 beside the old one and puts it in its place; readers see the old or the new.
  static func replace(_ path: String, with data: Data) throws {
    let temporary = "\(path).\(getpid()).new"
    unlink(temporary)
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Failure() }
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    do {
      try handle.write(contentsOf: data)
      try handle.synchronize()
    } catch {
      unlink(temporary)
      throw error
    }
    guard rename(temporary, path) == 0 else {
      unlink(temporary)
      throw Failure()
    }
    syncDirectory((path as NSString).deletingLastPathComponent)
  }

  /// Removes what processes left that died while they wrote: half a file may hold a secret.
  static func removeLeftovers(in directory: String, of name: String = "") {
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: directory) } catch { return }
    for file in names where file.hasPrefix(name) && file.hasSuffix(".new") {
      let parts = file.dropLast(".new".count).split(separator: ".")
      guard let process = parts.last.flatMap({ Int32($0) }), process != getpid() else { continue }
      // Whoever still runs is still writing.
      if kill(process, 0) != 0 && errno == ESRCH { unlink("\(directory)/\(file)") }
    }
  }

  /// Makes a rename or removal durable.
  static func syncDirectory(_ path: String) {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { return }
    fsync(directory)
    close(directory)
  }

  /// The text with everything but letters, digits, `-` and `_` as `%XX`: fit for a file name, and one to one.
  static func safe(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let hex = String(byte, radix: 16, uppercase: true)
        result += "%" + (hex.count == 1 ? "0" : "") + hex
      }
    }
    return result
  }
}
