/// How traces show steps.
extension Step: CustomStringConvertible {
  static func deviceName(_ device: Int) -> String { String(UnicodeScalar(UInt8(65 + device % 26))) }

  var description: String {
    let name = Step.deviceName
    switch self {
    case .program(let device, let program): return "\(name(device)): \(program)"
    case .sync(let device, let plan): return "\(name(device)): \(plan)"
    case .pass(let time): return "\(time) ms pass"
    case .skew(let device, let skew): return "\(name(device)): clock off by \(skew) ms"
    case .restart(let device): return "\(name(device)): restart"
    case .addColumn(let device, let table): return "\(name(device)): add a column to table \(table)"
    case .copy(let from, let to): return "the file of \(name(from)) replaces that of \(name(to))"
    case .signIn(let device, let isIn): return "\(name(device)): the token is \(isIn ? "good again" : "refused")"
    case .restartServer: return "server: restart"
    case .backUpServer: return "server: backup"
    case .restoreServer: return "server: restore the backup"
    case .deleteZone: return "server: delete the zone"
    }
  }
}

extension Program: CustomStringConvertible {
  var description: String {
    var words = statements.map(\.sql)
    if isTransaction { words = ["BEGIN"] + words + [isRolledBack ? "ROLLBACK" : "COMMIT"] }
    if recursiveTriggers { words.insert("PRAGMA recursive_triggers = ON", at: 0) }
    return words.joined(separator: "; ") + (pace == 0 ? " (all in one ms)" : "")
  }
}

extension SyncPlan: CustomStringConvertible {
  var description: String {
    var words = ["sync"]
    if scope != .all { words.append(scope.rawValue) }
    for (number, fault) in faults.sorted(by: { $0.key < $1.key }) {
      words.append("[request \(number): \(fault.rawValue)]")
    }
    for (number, program) in during.sorted(by: { $0.key < $1.key }) {
      words.append("[during request \(number): \(program)]")
    }
    if let crashAtCommit { words.append("[crash at commit \(crashAtCommit)]") }
    if let failingCommits { words.append("[commits \(failingCommits) fail]") }
    return words.joined(separator: " ")
  }
}
