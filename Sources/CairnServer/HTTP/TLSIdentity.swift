import CCrypto
import Foundation

/// A certificate, with those that sign it, and its private key.
public struct TLSIdentity: Sendable {
  let certificate: String
  let privateKey: String

  /// Reads both from PEM files and checks that they belong together.
  public init(certificateFile: String, keyFile: String) throws(ServerStartError) {
    certificate = try Self.text(certificateFile, "--tls-cert")
    privateKey = try Self.text(keyFile, "--tls-key")
    guard let found = PEM.read(certificate, { PEM_read_bio_X509($0, nil, nil, nil) }) else {
      throw ServerStartError(
        "\(certificateFile) holds no certificate in PEM",
        remedy: "give the certificate, followed by its chain, with --tls-cert")
    }
    defer { X509_free(found) }
    guard let key = PEM.readPrivateKey(privateKey) else {
      throw ServerStartError(
        "\(keyFile) holds no private key in PEM that can be read without a password",
        remedy: "give the key of the certificate with --tls-key")
    }
    defer { EVP_PKEY_free(key) }
    guard X509_check_private_key(found, key) == 1 else {
      throw ServerStartError(
        "\(keyFile) is not the key of the certificate in \(certificateFile)",
        remedy: "give two files that were made together")
    }
    guard X509_cmp_current_time(X509_get0_notAfter(found)) > 0 else {
      throw ServerStartError("the certificate in \(certificateFile) has expired", remedy: "get a new one")
    }
  }

  private static func text(_ path: String, _ option: String) throws(ServerStartError) -> String {
    do { return try String(contentsOfFile: path, encoding: .utf8) } catch {
      let reason = FileManager.default.fileExists(atPath: path) ? "can't be read" : "does not exist"
      throw ServerStartError("\(path) \(reason)", remedy: "check the file that \(option) names, and its permissions")
    }
  }
}
