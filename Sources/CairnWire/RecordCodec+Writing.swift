import CairnRecords

extension JSONWriter {
  /// Writes a record as answers carry it (section 6). Null fields are left out; `desiredKeys` limits fields.
  public mutating func record(_ record: Record, _ style: WireStyle, desiredKeys: Set<String>? = nil) {
    beginObject()
    pair("recordName", record.id.name)
    pair("recordType", record.type)
    if let tag = record.changeTag { pair("recordChangeTag", tag.rawValue) }
    literal(",\"fields\":{")
    for field in record.fields.storage {
      guard let value = field.value else { continue }
      if let desiredKeys, !desiredKeys.contains(field.name) { continue }
      key(field.name)
      self.field(value, style)
    }
    literal("},\"pluginFields\":{},\"deleted\":false")
    if let stamp = record.created { self.stamp("created", stamp) }
    if let stamp = record.modified { self.stamp("modified", stamp) }
    if let parent = record.parent { self.parent(parent) }
    if let sharing = record.sharing { sharingKeys(sharing, style) }
    key("zoneID")
    answeredZoneID(record.id.zone, style)
    endObject()
  }

  /// Writes a tombstone as feeds carry it. Type, tag and time are written where the style asks for them.
  ///
  /// - Parameter modified: time of the delete and the user who deleted (section 15, `tombstone-time`); without it the
  ///   deletion's own time is written.
  public mutating func tombstone(
    _ deletion: RecordDeletion, changeTag: ChangeTag? = nil, modified: RecordStamp? = nil, _ style: WireStyle
  ) {
    beginObject()
    pair("recordName", deletion.id.name)
    if style.tombstoneType {
      if let type = deletion.type { pair("recordType", type) }
      if let changeTag { pair("recordChangeTag", changeTag.rawValue) }
    }
    pair("deleted", true)
    if style.tombstoneTime, let stamp = modified ?? deletion.time.map({ RecordStamp(timestamp: $0) }) {
      self.stamp("modified", stamp)
    }
    key("zoneID")
    answeredZoneID(deletion.id.zone, style)
    endObject()
  }

  /// Writes a failed entry of `records[]`.
  public mutating func failedRecord(_ name: String, _ error: CloudError, _ style: WireStyle) {
    beginObject()
    pair("recordName", name)
    errorKeys(error, style)
    endObject()
  }

  /// Writes what became of one operation. `desiredKeys` never limits the record of a conflict.
  public mutating func outcome(_ outcome: OperationOutcome, _ style: WireStyle, desiredKeys: Set<String>? = nil) {
    switch outcome {
    case .saved(let record): self.record(record, style, desiredKeys: desiredKeys)
    case .deleted(let id):
      beginObject()
      pair("recordName", id.name)
      pair("deleted", true)
      endObject()
    case .failed(let id, let error): failedRecord(id.name, error, style)
    }
  }

  /// Writes a record as a modify operation carries it: no zone, no stamps; nulls written.
  mutating func operationRecord(_ operation: RecordOperation, _ style: WireStyle) {
    let record = operation.record
    beginObject()
    pair("recordName", record.id.name)
    if !record.type.isEmpty { pair("recordType", record.type) }
    if let tag = record.changeTag { pair("recordChangeTag", tag.rawValue) }
    if operation.kind.isDelete {
      if style.tombstoneTime, let time = operation.deleteTime { stamp("modified", RecordStamp(timestamp: time)) }
    } else {
      key("fields")
      beginObject()
      for field in record.fields.storage {
        key(field.name)
        self.field(field.value, style)
      }
      endObject()
      if let parent = record.parent {
        self.parent(parent)
      } else if record.sharing?.removesParent == true {
        key("parent")
        null()
      }
      if let sharing = record.sharing { sharingKeys(sharing, style) }
    }
    endObject()
  }

  private mutating func stamp(_ name: StaticString, _ stamp: RecordStamp) {
    key(name)
    beginObject()
    pair("timestamp", stamp.timestamp)
    if let user = stamp.userRecordName { pair("userRecordName", user) }
    if let device = stamp.deviceID { pair("deviceID", device) }
    endObject()
  }

  private mutating func parent(_ name: String) {
    key("parent")
    beginObject()
    pair("recordName", name)
    endObject()
  }
}
