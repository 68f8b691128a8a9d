import CairnRecords
import Foundation

/// A field of an account with the stamp of its last edit.
struct StampedValue: Sendable, Hashable {
  var value: FieldValue?
  var stamp: Stamp

  /// By bytes: Swift takes strings for equal that differ in their Unicode normal form.
  static func == (a: StampedValue, b: StampedValue) -> Bool {
    a.stamp == b.stamp && ValueKey.same(a.value, b.value)
  }

  func hash(into hasher: inout Hasher) { hasher.combine(stamp) }

  /// Time, then writer, then value; greater wins.
  func isLess(than other: StampedValue) -> Bool {
    stamp != other.stamp ? stamp < other.stamp : ValueKey.precedes(value, other.value)
  }
}

/// What an account record says: every field with its stamp, those that this release does not know included
/// (accounts.md section 2, A6).
///
/// ``merged(with:)`` is commutative, associative and idempotent.
struct AccountContent: Hashable, Sendable {
  enum Name {
    static let instanceID = "instanceID"
    static let service = "service"
    static let instanceURL = "instanceURL"
    static let userName = "userName"
    static let label = "label"
    static let position = "position"
  }

  let id: AccountID
  /// Without `accountID`, `formatVersion` and `fieldStamps`, which follow from the rest.
  var fields: [String: StampedValue]

  func merged(with other: AccountContent) -> AccountContent {
    var result = self
    for (name, theirs) in other.fields {
      guard let ours = fields[name] else {
        result.fields[name] = theirs
        continue
      }
      if ours.isLess(than: theirs) { result.fields[name] = theirs }
    }
    return result
  }

  func text(_ name: String) -> String? {
    guard case .string(let text)? = fields[name]?.value else { return nil }
    return text
  }

  mutating func set(_ name: String, _ value: FieldValue?, _ stamp: Stamp) {
    fields[name] = StampedValue(value: value, stamp: stamp)
  }

  /// The newest time of any field: what a new edit must be later than.
  var newestTime: Int64 { fields.values.reduce(0) { max($0, $1.stamp.time) } }

  /// Nil where a field that every account has is missing or no UUID.
  var instanceID: InstanceID? { text(Name.instanceID).flatMap { InstanceID($0) } }

  var isMigrated: Bool { instanceID.map { AccountID(migratedFrom: $0) == id } ?? false }

  /// The account as apps see it; nil where the record lacks what every account has.
  var account: Account? {
    guard let instanceID, let service = text(Name.service), let url = text(Name.instanceURL) else { return nil }
    var position = 0.0
    switch fields[Name.position]?.value {
    case .double(let number)?: position = number
    case .int64(let number)?: position = Double(number)
    default: break
    }
    return Account(
      id: id, instanceID: instanceID, service: service, instanceURL: url, userName: text(Name.userName),
      label: text(Name.label), position: position)
  }
}

/// One user on one instance (accounts.md section 1). Holds no secret (accounts.md A4).
public struct Account: Identifiable, Hashable, Sendable {
  public let id: AccountID
  public let instanceID: InstanceID
  public let service: String
  /// Without user info, query and fragment.
  public var instanceURL: String
  /// Set once.
  public var userName: String?
  public var label: String?
  /// Where it stands in lists; ascending, then by ID.
  public var position: Double

  /// Made from a legacy login (accounts.md A7).
  public var isMigrated: Bool { AccountID(migratedFrom: instanceID) == id }
}

/// Addresses of instances as records may hold them (accounts.md A4).
public enum InstanceURL {
  /// The address without user info, query and fragment, scheme and host in lower case, without trailing slashes; nil
  /// where it has no scheme or host.
  public static func cleaned(_ text: String) -> String? {
    var text = Substring(text.filter { !$0.isWhitespace && !$0.isNewline })
    for mark in ["#", "?"] as [Character] { if let end = text.firstIndex(of: mark) { text = text[..<end] } }
    guard let separator = text.range(of: "://"), separator.lowerBound != text.startIndex else { return nil }
    let scheme = text[..<separator.lowerBound].lowercased()
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex(of: "/") ?? rest.endIndex
    var host = rest[..<end]
    if let at = host.lastIndex(of: "@") { host = host[host.index(after: at)...] }
    guard !host.isEmpty else { return nil }
    var path = rest[end...]
    while path.last == "/" { path.removeLast() }
    return "\(scheme)://\(host.lowercased())\(path)"
  }

  /// Whether an address has parts that may hold a secret.
  public static func holdsMore(_ text: String) -> Bool {
    guard let separator = text.range(of: "://") else { return text.contains("@") }
    let authority = text[separator.upperBound...].prefix { $0 != "/" }
    return text.contains("?") || text.contains("#") || authority.contains("@")
  }
}
