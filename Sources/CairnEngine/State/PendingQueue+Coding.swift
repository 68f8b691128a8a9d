import CairnRecords

/// A stored entry: `p` sequence kind revision [reason [retryAt]] and `f` sequence kind revision batch, separated by
/// `;`, with `h` for a held one. See docs/internals/engine.md.
extension PendingQueue {
  /// A stored row that this library cannot read: the engine halts rather than lose a change (engine section 3).
  public struct Unreadable: Error, Hashable, Sendable, CustomStringConvertible {
    public var key: String
    public var description: String { "the stored change \(key) cannot be read" }
  }

  static func encode(_ entry: Entry) -> String {
    var out = ""
    if let change = entry.pending {
      out = "p \(encode(change))"
      if let blocked = change.blocked {
        out += " \(blocked.reason.rawValue)"
        if let at = blocked.retryAt { out += " \(at)" }
      }
    }
    if let flight = entry.flight {
      if !out.isEmpty { out += ";" }
      out += "f \(encode(flight.change)) \(flight.batch)"
    }
    return entry.isHeld ? out + ";h" : out
  }

  private static func encode(_ change: Change) -> String {
    "\(change.sequence) \(change.kind == .save ? "s" : "d") \(change.revision)"
  }

  static func decode(_ text: String) -> Entry? {
    var entry = Entry()
    for part in text.utf8.split(separator: UInt8(ascii: ";")) {
      let words = part.split(separator: UInt8(ascii: " ")).map { Substring($0) }
      if words == ["h"] {
        entry.isHeld = true
        continue
      }
      guard words.count >= 4, let sequence = number(words[1]), let revision = number(words[3]) else { return nil }
      guard let kind: PendingKind = words[2] == "s" ? .save : words[2] == "d" ? .delete : nil else { return nil }
      var change = Change(sequence: sequence, kind: kind, revision: revision)
      if words[0] == "p" {
        if words.count > 4 {
          guard let reason = PendingReason(rawValue: String(words[4])) else { return nil }
          change.blocked = Blocked(reason, retryAt: words.count > 5 ? Int64(words[5]) : nil)
        }
        entry.pending = change
      } else {
        guard words[0] == "f", words.count > 4, let batch = number(words[4]) else { return nil }
        entry.flight = Flight(change: change, batch: batch)
      }
    }
    return entry.pending == nil && entry.flight == nil ? nil : entry
  }

  /// A number that was counted up, and can be counted further.
  private static func number(_ text: Substring) -> Int64? {
    guard let number = Int64(text), (0...FieldClock.greatest).contains(number) else { return nil }
    return number
  }

  /// Reads the rows whose keys begin with `prefix`.
  public init(prefix: String, rows: [String: String]) throws(Unreadable) {
    self.init(prefix: prefix)
    for (key, value) in rows where key.utf8.starts(with: prefix.utf8) {
      // A key that would be written otherwise may stand for the same record as another.
      guard let id = ID(queueKey: Substring(key.utf8.dropFirst(prefix.utf8.count))),
        id.queueKey.utf8.elementsEqual(key.utf8.dropFirst(prefix.utf8.count)), let entry = Self.decode(value)
      else { throw Unreadable(key: key) }
      entries[id] = entry
      for change in [entry.pending, entry.flight?.change] {
        guard let change else { continue }
        order.append(Slot(sequence: change.sequence, id: id))
        nextSequence = max(nextSequence, change.sequence + 1, change.revision + 1)
      }
      if entry.pending != nil { pendingCount += 1 }
      if let flight = entry.flight {
        flightCount += 1
        nextBatch = max(nextBatch, flight.batch + 1)
      }
    }
    order.sort { $0.sequence < $1.sequence }
    for (a, b) in zip(order, order.dropFirst()) where a.sequence == b.sequence {
      throw Unreadable(key: prefix + b.id.queueKey)
    }
  }
}

extension ZoneID: QueueID {
  public var queueKey: String { StoredKeys.path(self) }

  public init?(queueKey: Substring) {
    guard let (zone, rest) = StoredKeys.parse(path: queueKey), rest.isEmpty else { return nil }
    self = zone
  }
}

extension RecordID: QueueID {
  public var queueKey: String { StoredKeys.path(zone) + "/" + name }

  public init?(queueKey: Substring) {
    guard let (zone, rest) = StoredKeys.parse(path: queueKey) else { return nil }
    self.init(name: String(rest), zone: zone)
  }
}
