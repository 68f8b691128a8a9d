import CairnRecords
import CairnServerCore
import Foundation

/// What the three headers of a server-to-server key say (web-services section 3).
struct SignedRequest {
  static let keyHeader = "x-apple-cloudkit-request-keyid"
  static let dateHeader = "x-apple-cloudkit-request-iso8601date"
  static let signatureHeader = "x-apple-cloudkit-request-signaturev1"

  /// How far the date of a request may be from the server's, in ms.
  static let window: Int64 = 600_000
  /// Bytes of a body over which the switch `largeBodyHash` lets it go unsigned.
  static let largeBody = 1 << 20

  let keyID: [UInt8]
  /// As it was sent, because that is what was signed.
  let date: String
  /// DER.
  let signature: [UInt8]
  let request: HTTPRequest

  /// - Throws: `authenticationFailed` for headers that cannot be read, and for a date too far from `now`.
  init(_ request: HTTPRequest, now: Int64) throws(CloudError) {
    self.request = request
    guard let key = request.header(Self.keyHeader).flatMap(Hexadecimal.bytes), key.count == 32 else {
      throw CloudError(.authenticationFailed, "The key ID has not 64 hex digits")
    }
    keyID = key
    guard let text = request.header(Self.signatureHeader), text.utf8.count <= 200,
      let signature = Data(base64Encoded: text)
    else { throw CloudError(.authenticationFailed, "The signature is missing or no base64") }
    self.signature = Array(signature)
    guard let date = request.header(Self.dateHeader), let time = Self.time(date) else {
      throw CloudError(.authenticationFailed, "The date of the signature is missing or not like 2016-01-25T22:15:43Z")
    }
    self.date = date
    guard abs(now - time) <= Self.window else {
      throw CloudError(.authenticationFailed, "The date of the signature is more than 10 minutes off")
    }
  }

  /// Whether the key has signed the request, in one of the forms in which clients do.
  func isSigned(by key: P256Key, allowsUnsignedLargeBody: Bool) -> Bool {
    for path in paths {
      for hash in hashes(allowsUnsignedLargeBody)
      where key.verifies(signature, of: Array("\(date):\(hash):\(path)".utf8)) {
        return true
      }
    }
    return false
  }

  /// The path as it was sent from `/database` on, with and without the query.
  private var paths: [String] {
    let target = request.target
    guard let start = target.firstRange(of: "/database") else { return [] }
    let whole = String(target[start.lowerBound...])
    guard let mark = whole.firstIndex(of: "?") else { return [whole] }
    return [whole, String(whole[..<mark])]
  }

  private func hashes(_ allowsUnsignedLargeBody: Bool) -> [String] {
    let empty = ["", Self.hash([])]
    if request.body.isEmpty { return empty }
    let own = Self.hash(request.body)
    return allowsUnsignedLargeBody && request.body.count > Self.largeBody ? [own] + empty : [own]
  }

  private static func hash(_ body: [UInt8]) -> String { Data(SHA256Hash.of(body)).base64EncodedString() }

  /// `2016-01-25T22:15:43Z` in ms since 1970.
  static func time(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count == 20 else { return nil }
    for (place, sign) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")] {
      guard bytes[place] == sign.utf8.first else { return nil }
    }
    func number(_ from: Int, _ count: Int) -> Int64? {
      var value: Int64 = 0
      for byte in bytes[from..<from + count] {
        guard (48...57).contains(byte) else { return nil }
        value = value * 10 + Int64(byte - 48)
      }
      return value
    }
    guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
      let minute = number(14, 2), let second = number(17, 2), (1...12).contains(month), (1...31).contains(day),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    // Days since 1970 of the civil calendar, years counted from March.
    let years = month > 2 ? year : year - 1
    let era = years / 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = (years - era * 400) * 365 + (years - era * 400) / 4 - (years - era * 400) / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000
  }
}
