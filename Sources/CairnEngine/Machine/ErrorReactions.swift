import CairnRecords

/// What the engine does about the failure of one entry (engine section 10).
enum EntryReaction: Hashable {
  /// The category is told at once.
  case settled(EntryResult)
  /// The server's record is needed first.
  case lookUp
  /// The zone is fetched, then the category is told.
  case fetchFirst(EntryResult)
  /// Sent again with the next request: another entry was the culprit.
  case again
  /// The zone does not exist.
  case zoneMissing
}

/// What the engine does about the failure of a whole request.
enum RequestReaction: Hashable {
  /// Nothing goes to this database before the wait is over.
  case holdDatabase
  /// Nothing goes to this zone before the wait is over.
  case holdZone
  case backOff(isNetwork: Bool)
  case signedOut
  case cancelled
  case quota
  /// Refused: the zone is left alone in this call.
  case refused
}

/// The table of engine section 10, as pure functions of codes.
enum ErrorReactions {
  static func entry(_ error: CloudError, isDelete: Bool) -> EntryReaction {
    switch error.code {
    case .conflict, .exists:
      if let record = error.serverRecord { return .settled(.conflict(record)) }
      return .lookUp
    case .notFound:
      return isDelete ? .settled(.deleted) : .fetchFirst(.unknownItem(error))
    case .zoneNotFound:
      return isDelete ? .settled(.deleted) : .zoneMissing
    case .atomicError, .cancelled:
      return .again
    case .validatingReferenceError:
      return .fetchFirst(.handedOver(.missingParent, error))
    case .accessDenied:
      return .settled(.handedOver(.permission, error))
    case .badRequest, .uniqueFieldError:
      return .settled(.handedOver(.rejected, error))
    case .limitExceeded:
      return .settled(.handedOver(.tooLarge, error))
    case .quotaExceeded:
      return .settled(.postponed(.quota, retryAt: nil))
    case .throttled, .tryAgainLater, .zoneBusy:
      return .settled(.postponed(.throttled, retryAt: nil))
    case .authenticationFailed, .authenticationRequired:
      return .settled(.postponed(.signedOut, retryAt: nil))
    case .networkUnavailable, .networkFailure, .serverResponseLost:
      return .settled(.postponed(.offline, retryAt: nil))
    case .internalError, .undecodableAnswer, .changeTokenExpired:
      return .settled(.postponed(.internal, retryAt: nil))
    }
  }

  static func request(_ error: CloudError) -> RequestReaction {
    switch error.code {
    case .throttled, .tryAgainLater: .holdDatabase
    case .zoneBusy: .holdZone
    case .authenticationFailed, .authenticationRequired: .signedOut
    case .networkUnavailable, .networkFailure, .serverResponseLost: .backOff(isNetwork: true)
    case .cancelled: .cancelled
    case .quotaExceeded: .quota
    case .internalError, .undecodableAnswer: .backOff(isNetwork: false)
    case .accessDenied, .atomicError, .badRequest, .conflict, .exists, .notFound, .validatingReferenceError,
      .zoneNotFound, .uniqueFieldError, .changeTokenExpired, .limitExceeded:
      .refused
    }
  }

  /// The reason under which the entries of a failed request wait (tables section 7).
  static func pendingReason(_ error: CloudError) -> PendingReason {
    switch request(error) {
    case .holdDatabase, .holdZone: .throttled
    case .backOff(let isNetwork): isNetwork ? .offline : .internal
    case .signedOut: .signedOut
    case .cancelled: .unsent
    case .quota: .quota
    case .refused: error.code == .accessDenied ? .permission : .rejected
    }
  }

  /// Whether a smaller request may succeed where this one failed as a whole (engine section 6; web-services section 12:
  /// a request over a limit is a BAD_REQUEST).
  static func asksForSmallerRequest(_ error: CloudError) -> Bool {
    error.code == .limitExceeded || error.code == .badRequest
  }

  /// Whether a fetch with a token is to be repeated without one.
  static func tokenIsBad(_ error: CloudError) -> Bool {
    error.code == .changeTokenExpired || error.code == .badRequest
  }

  /// Whether an expired token means that history was lost, so that absence from a snapshot proves nothing (tables L12).
  static func lostHistory(_ error: CloudError, lastFetch: Int64?, now: Int64, settings: SyncSettings)
    -> ZoneQuestion.Cause?
  {
    switch error.expiryCause {
    case .retention: return nil
    case .epoch: return .epoch
    case .incarnation: return .incarnation
    case nil:
      guard let lastFetch, now - lastFetch < settings.tombstoneLife else { return nil }
      return .epoch
    }
  }
}
