#if canImport(Security)
  import Foundation
  import Security

  /// Keeps credentials in the Keychain. A replacement is one update, or one add where there was none.
  public struct KeychainCredentialStore: CredentialStore {
    private let service: String
    private let accessGroup: String?
    private let synchronizable: Bool

    /// - Parameters:
    ///   - service: names the app's items.
    ///   - synchronizable: items travel by iCloud Keychain; `delete` then removes them on every device.
    public init(service: String, accessGroup: String? = nil, synchronizable: Bool) {
      self.service = service
      self.accessGroup = accessGroup
      self.synchronizable = synchronizable
    }

    public func credential(for key: CredentialKey) throws(CredentialStoreError) -> CredentialLookup {
      var query = query(key)
      query[kSecReturnData as String] = true
      query[kSecReturnAttributes as String] = true
      query[kSecAttrSynchronizable as String] = kSecAttrSynchronizableAny
      var result: CFTypeRef?
      switch SecItemCopyMatching(query as CFDictionary, &result) {
      case errSecSuccess:
        guard let item = result as? [String: Any], let secret = item[kSecValueData as String] as? Data else {
          return .unavailable
        }
        let revision = (item[kSecAttrModificationDate as String] as? Date).map { "\($0.timeIntervalSince1970)" }
        return .found(
          Credential(userName: item[kSecAttrLabel as String] as? String, secret: secret, revision: revision))
      case errSecItemNotFound: return .absent
      case let status where Self.isLocked(status): return .unavailable
      case let status: throw CredentialStoreError("the Keychain refused to read (\(status))")
      }
    }

    public func replace(
      _ credential: Credential, for key: CredentialKey
    ) throws(CredentialStoreError) -> CredentialWrite {
      var values: [String: Any] = [kSecValueData as String: credential.secret]
      values[kSecAttrLabel as String] = credential.userName ?? ""
      var status = SecItemUpdate(query(key) as CFDictionary, values as CFDictionary)
      if status == errSecItemNotFound {
        var item = query(key).merging(values) { $1 }
        item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlock
        status = SecItemAdd(item as CFDictionary, nil)
      }
      if status == errSecSuccess { return .done }
      if Self.isLocked(status) { return .unavailable }
      throw CredentialStoreError("the Keychain refused to write (\(status))")
    }

    public func delete(_ key: CredentialKey) throws(CredentialStoreError) -> CredentialWrite {
      var query = query(key)
      query[kSecAttrSynchronizable as String] = kSecAttrSynchronizableAny
      let status = SecItemDelete(query as CFDictionary)
      if status == errSecSuccess || status == errSecItemNotFound { return .done }
      if Self.isLocked(status) { return .unavailable }
      throw CredentialStoreError("the Keychain refused to delete (\(status))")
    }

    private static func isLocked(_ status: OSStatus) -> Bool {
      status == errSecInteractionNotAllowed || status == errSecNotAvailable
    }

    private func query(_ key: CredentialKey) -> [String: Any] {
      var query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
        kSecAttrSynchronizable as String: synchronizable, kSecAttrAccount as String: name(key),
      ]
      if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
      return query
    }

    private func name(_ key: CredentialKey) -> String {
      switch key {
      case .account(let scope, let id): "\(scope)/\(id)"
      case .legacy(let id): id.rawValue
      }
    }
  }
#endif
