import CairnRecords
import CairnWire

extension RecordBodyCodec {
  /// All fields, for a create or a replace: NULLs are left out.
  public func encode(_ content: RecordContent) -> Fields {
    var body = Body(nulls: false, count: wireNames.count + 4)
    write(content, to: &body) { _ in true }
    return body.finish()
  }

  /// The fields of an update: those that are not confirmed, NULLs as explicit nulls, and Cairn's own (tables U2).
  ///
  /// - Parameters:
  ///   - released: wire names of fields whose values were assets in the server's version and are so no more.
  ///   - isDirty: whether the server has not confirmed the field of that wire name.
  public func encodeChanges(
    _ content: RecordContent, released: Set<String> = [], isDirty: (String) -> Bool
  ) -> Fields {
    var body = Body(nulls: true, count: wireNames.count + 5)
    write(content, to: &body, isDirty)
    for name in released.sorted() { body.fields.append(RecordField.assetPrefix + name, nil) }
    return body.finish()
  }

  /// The fields so far, and what goes to `cairn_values`.
  private struct Body {
    let nulls: Bool
    var fields = Fields()
    var tags: [(name: String, text: String)] = []

    init(nulls: Bool, count: Int) {
      self.nulls = nulls
      fields.reserveCapacity(count)
    }

    mutating func add(_ name: String, _ value: FieldValue?) {
      if value != nil || nulls { fields.append(name, value) }
    }

    mutating func finish() -> Fields {
      guard !tags.isEmpty else {
        add(RecordField.values, nil)
        return fields
      }
      tags.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      var writer = JSONWriter(capacity: 256)
      writer.beginObject()
      for (name, text) in tags {
        writer.key(name)
        writer.string(text)
      }
      writer.endObject()
      add(RecordField.values, .string(String(decoding: writer.bytes, as: UTF8.self)))
      return fields
    }
  }

  private func write(_ content: RecordContent, to body: inout Body, _ isDirty: (String) -> Bool) {
    for i in wireNames.indices where isField[i] && content.clocks[i] != RecordContent.never {
      let name = wireNames[i]
      let sends = isDirty(name)
      switch ValueCodec.encode(content.values[i], shapes[i]) {
      case .null:
        if sends { body.add(name, nil) }
      case .field(let value):
        if sends { body.add(name, value) }
      case .tagged(let text):
        // One field holds all tagged values: it goes as a whole.
        body.tags.append((name, text))
        if sends { body.add(name, nil) }
      case .asset(let asset, let tag):
        body.tags.append((name, tag))
        guard sends else { continue }
        body.add(name, nil)
        body.fields.append(assetNames[i], .asset(asset))
      }
    }
    for kept in content.kept { write(kept, to: &body, sends: isDirty(kept.name)) }
    body.fields.append(RecordField.clocks, .string(clocks(content)))
    body.fields.append(RecordField.life, .int64(content.life))
    if let cut = content.cut { body.fields.append(RecordField.cut, .int64(cut)) }
    if let key = content.key { body.fields.append(RecordField.key, .int64(key)) }
    body.fields.append(RecordField.format, .int64(RecordField.currentFormat))
  }

  private func write(_ kept: RecordContent.KeptField, to body: inout Body, sends: Bool) {
    if let text = kept.tagged { body.tags.append((kept.name, text)) }
    guard sends else { return }
    body.add(kept.name, kept.field)
    if let asset = kept.asset { body.fields.append(RecordField.assetPrefix + kept.name, .asset(asset)) }
  }

  // MARK: Clocks

  /// `cairn_clocks`: clocks ascending, names bytewise.
  func clocks(_ content: RecordContent) -> String {
    if content.kept.isEmpty, let first = sortedColumns.first {
      let clock = content.clocks[first]
      if clock != RecordContent.never, sortedColumns.allSatisfy({ content.clocks[$0] == clock }) {
        return uniformClocks(clock)
      }
    }
    return mixedClocks(content)
  }

  private func uniformClocks(_ clock: FieldClock) -> String {
    var digits = String(clock)
    return digits.withUTF8 { digits in
      let count = digits.count + allNames.count + 5
      return String(unsafeUninitializedCapacity: count) { buffer in
        var rest = buffer[...]
        func add(_ bytes: some Collection<UInt8>) {
          rest = rest[rest.update(fromContentsOf: bytes)...]
        }
        add(CollectionOfOne(UInt8(ascii: "{")))
        add(CollectionOfOne(UInt8(ascii: "\"")))
        add(digits)
        add(CollectionOfOne(UInt8(ascii: "\"")))
        add(CollectionOfOne(UInt8(ascii: ":")))
        add(allNames)
        add(CollectionOfOne(UInt8(ascii: "}")))
        return count
      }
    }
  }

  private func mixedClocks(_ content: RecordContent) -> String {
    if !content.kept.isEmpty { return keptClocks(content) }
    let clocks = content.clocks
    // Few fields have a clock of their own: the next one is looked for each time.
    func next(after last: FieldClock) -> FieldClock? {
      var least: FieldClock?
      for column in sortedColumns where clocks[column] > last && clocks[column] < least ?? .max {
        least = clocks[column]
      }
      return least
    }
    var writer = JSONWriter(capacity: allNames.count + 96)
    writer.beginObject()
    var last = RecordContent.never
    while let clock = next(after: last) {
      writer.key(String(clock))
      writer.beginArray()
      for i in sortedColumns.indices where clocks[sortedColumns[i]] == clock { writer.encodedValue(sortedNames[i]) }
      writer.endArray()
      last = clock
    }
    writer.endObject()
    return writer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// The clocks of a record that has fields without a column.
  private func keptClocks(_ content: RecordContent) -> String {
    var entries: [(clock: FieldClock, name: String)] = []
    for column in sortedColumns where content.clocks[column] != RecordContent.never {
      entries.append((content.clocks[column], wireNames[column]))
    }
    for kept in content.kept { entries.append((kept.clock, kept.name)) }
    entries.sort { a, b in
      a.clock != b.clock ? a.clock < b.clock : a.name.utf8.lexicographicallyPrecedes(b.name.utf8)
    }
    var writer = JSONWriter(capacity: 256)
    writer.beginObject()
    var last: FieldClock?
    for (clock, name) in entries {
      if clock != last {
        if last != nil { writer.endArray() }
        writer.key(String(clock))
        writer.beginArray()
        last = clock
      }
      writer.string(name)
    }
    if last != nil { writer.endArray() }
    writer.endObject()
    return writer.withBytes { String(decoding: $0, as: UTF8.self) }
  }
}
