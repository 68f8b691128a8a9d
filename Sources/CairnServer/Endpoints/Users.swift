import CairnRecords
import CairnServerCore
import CairnWire

extension Endpoint {
  static let usersCaller = Endpoint("users/caller", allowsGet: true, [.public, .private]) { (call) throws(CloudError) in
    call.response { UserAnswer(userRecordName: call.caller.recordName).encodeCaller(into: &$0) }
  }

  static let usersCurrent = Endpoint("users/current", allowsGet: true, [.public, .private]) {
    (call) throws(CloudError) in
    call.response { UserAnswer(userRecordName: call.caller.recordName).encodeCurrent(into: &$0) }
  }
}
