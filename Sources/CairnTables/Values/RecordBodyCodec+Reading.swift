import CairnRecords
import CairnWire

extension RecordBodyCodec {
  /// Reads a record's fields.
  ///
  /// - Parameter foreignClock: the clock of all fields of a record without `cairn_clocks`, which a client wrote that
  ///   does not know Cairn (tables M14).
  public func decode(_ fields: Fields, foreignClock: FieldClock) throws(RecordBodyError) -> RecordContent {
    var reading = Reading(codec: self, fields: fields.storage)
    try reading.sort()
    guard let clocks = reading.clocks else { return try reading.foreign(foreignClock) }
    return try reading.content(clocks)
  }

  /// One record on its way.
  private struct Reading {
    let codec: RecordBodyCodec
    let fields: [Field]
    /// Where in ``fields`` each column's value is.
    var places: [Int]
    var assets: [(name: String, asset: Asset)] = []
    var unknown: [Field] = []
    var clocks: String?
    var tags: String?
    var life: Int64?
    var cut: Int64?
    var key: Int64?

    init(codec: RecordBodyCodec, fields: [Field]) {
      self.codec = codec
      self.fields = fields
      places = codec.noPlaces
    }

    mutating func sort() throws(RecordBodyError) {
      // Records of one table come with their fields in one order: the next column is a good guess.
      var guess = 0
      let names = codec.wireNames
      for place in fields.indices {
        if guess < names.count, names[guess] == fields[place].name, codec.isField[guess] {
          places[guess] = place
          guess += 1
        } else if fields[place].name.hasPrefix("cairn_") {
          try own(fields[place])
        } else if let column = codec.columnByName[fields[place].name] {
          places[column] = place
          guess = column + 1
        } else {
          unknown.append(fields[place])
        }
      }
    }

    /// Whether the record has a value, not NULL, for a column in its field.
    private func hasValue(_ column: Int) -> Bool {
      places[column] != RecordBodyCodec.nowhere && fields[places[column]].value != nil
    }

    private mutating func own(_ field: Field) throws(RecordBodyError) {
      guard let value = field.value else { return }
      switch (field.name, value) {
      case (RecordField.clocks, .string(let text)): clocks = text
      case (RecordField.values, .string(let text)): tags = text
      case (RecordField.life, .int64(let number)): life = number
      case (RecordField.cut, .int64(let number)): cut = number
      case (RecordField.key, .int64(let number)): key = number
      case (RecordField.format, .int64(let number)):
        guard number <= RecordField.currentFormat else { throw .newerFormat(number) }
      case (let name, .asset(let asset)) where name.hasPrefix(RecordField.assetPrefix):
        assets.append((String(name.dropFirst(RecordField.assetPrefix.count)), asset))
      case (RecordField.clocks, _), (RecordField.values, _), (RecordField.life, _), (RecordField.cut, _),
        (RecordField.key, _), (RecordField.format, _):
        throw .undecodable("\(field.name) has a wrong type")
      default: break
      }
    }

    // MARK: Records of Cairn

    func content(_ clocks: String) throws(RecordBodyError) -> RecordContent {
      guard let life else { throw .undecodable("cairn_life is missing") }
      try Self.check(life)
      if let cut { try Self.check(cut) }
      var result = RecordContent(
        life: life, cut: cut, key: key, values: [], clocks: codec.noClocks)
      var kept: [String: FieldClock] = [:]
      try codec.readClocks(clocks, &result.clocks, &kept)
      for i in places.indices where result.clocks[i] == RecordContent.never && hasValue(i) {
        // Another client has added the value: as old as the row, so that it is not lost and beats no edit.
        result.clocks[i] = life
      }
      for field in unknown where field.value != nil && kept[field.name] == nil { kept[field.name] = life }
      try fill(&result, kept)
      return result
    }

    private func fill(_ result: inout RecordContent, _ kept: [String: FieldClock]) throws(RecordBodyError) {
      let tagged = try tags.map { (text) throws(RecordBodyError) in try Self.readTags(text) } ?? [:]
      result.values.reserveCapacity(places.count)
      for i in places.indices {
        let isSet = result.clocks[i] != RecordContent.never
        result.values.append(isSet ? try content(i, tagged) : .null)
      }
      guard !kept.isEmpty else { return }
      for name in kept.keys.sorted() {
        result.kept.append(
          RecordContent.KeptField(
            name: name, clock: kept[name] ?? 0, field: unknown.last { $0.name == name }?.value, tagged: tagged[name],
            asset: asset(name)))
      }
    }

    private func content(_ column: Int, _ tagged: [String: String]) throws(RecordBodyError) -> FieldContent {
      let content: FieldContent?
      if !tagged.isEmpty, let text = tagged[codec.wireNames[column]] {
        content = ValueCodec.decode(tagged: text, asset: asset(codec.wireNames[column]), codec.shapes[column])
      } else {
        guard places[column] != RecordBodyCodec.nowhere, let value = fields[places[column]].value else { return .null }
        content = ValueCodec.decode(value, codec.shapes[column])
      }
      guard let content else { throw .undecodable("the value of \(codec.wireNames[column]) can't be read") }
      return content
    }

    private func asset(_ name: String) -> Asset? { assets.last { $0.name == name }?.asset }

    static func check(_ clock: FieldClock) throws(RecordBodyError) {
      guard clock.isValidClock else { throw .undecodable("the clock \(clock) is out of range") }
    }

    private static func readTags(_ text: String) throws(RecordBodyError) -> [String: String] {
      do {
        return try JSONReader.parse(Array(text.utf8)) { (reader) throws(WireError) in
          var result: [String: String] = [:]
          try reader.beginObject()
          while let name = try reader.nextKey() { result[name.string] = try reader.readString() }
          return result
        }
      } catch {
        throw .undecodable("cairn_values is damaged: \(error)")
      }
    }

    // MARK: Records of others

    func foreign(_ clock: FieldClock) throws(RecordBodyError) -> RecordContent {
      let clock = min(max(clock, 0), FieldClock.greatest)
      var result = RecordContent(
        life: clock, key: key, values: [], clocks: codec.noClocks, hasClocks: false)
      for i in places.indices where hasValue(i) { result.clocks[i] = clock }
      var kept: [String: FieldClock] = [:]
      for field in unknown { kept[field.name] = clock }
      try fill(&result, kept)
      return result
    }
  }

  // MARK: Clocks

  /// Reads `cairn_clocks` into clocks by column and, for names without a column, by name.
  func readClocks(
    _ text: String, _ clocks: inout [FieldClock], _ kept: inout [String: FieldClock]
  ) throws(RecordBodyError) {
    if let clock = commonClock(text) {
      try Reading.check(clock)
      for column in sortedColumns { clocks[column] = clock }
      return
    }
    if try readOwnClocks(text, &clocks) { return }
    var pairs: [(FieldClock, String)] = []
    do {
      pairs = try JSONReader.parse(Array(text.utf8)) { (reader) throws(WireError) in
        var pairs: [(FieldClock, String)] = []
        try reader.beginObject()
        while let key = try reader.nextKey() {
          let clock = Int64(key.string) ?? RecordContent.never
          try reader.beginArray()
          while try reader.nextElement() { pairs.append((clock, try reader.readString())) }
        }
        return pairs
      }
    } catch {
      throw .undecodable("cairn_clocks is damaged: \(error)")
    }
    for (clock, name) in pairs {
      try Reading.check(clock)
      if let column = columnByName[name] {
        guard clocks[column] == RecordContent.never else { throw .undecodable("\(name) has two clocks") }
        clocks[column] = clock
      } else {
        guard kept.updateValue(clock, forKey: name) == nil else { throw .undecodable("\(name) has two clocks") }
      }
    }
  }

  /// Reads a text in the form that devices write, whose names are all columns: clocks ascend, names of one clock too.
  /// Returns false, with nothing read, for any other.
  private func readOwnClocks(_ text: String, _ clocks: inout [FieldClock]) throws(RecordBodyError) -> Bool {
    var text = text
    var read = clocks
    var scan = ClockScan()
    let isOwn = text.withUTF8 { scan.run($0, sortedNames, sortedColumns, &read) }
    guard isOwn else { return false }
    for clock in scan.clocks { try Reading.check(clock) }
    clocks = read
    return true
  }

  /// The clock of a text that lists exactly the table's fields under one clock, as this device writes it.
  private func commonClock(_ text: String) -> FieldClock? {
    var text = text
    return text.withUTF8 { bytes in
      // {"…":[…]}
      let digits = bytes.count - allNames.count - 5
      guard digits > 0, digits <= 16, bytes[0] == UInt8(ascii: "{"), bytes[1] == UInt8(ascii: "\""),
        bytes[digits + 2] == UInt8(ascii: "\""), bytes[digits + 3] == UInt8(ascii: ":"),
        bytes[bytes.count - 1] == UInt8(ascii: "}")
      else { return nil }
      var clock: FieldClock = 0
      for byte in bytes[2..<(digits + 2)] {
        guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
        clock = clock * 10 + FieldClock(byte - UInt8(ascii: "0"))
      }
      return bytes[(digits + 4)..<(bytes.count - 1)].elementsEqual(allNames) ? clock : nil
    }
  }
}
