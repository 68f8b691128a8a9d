import CairnRecords
import CairnWire

/// The text form in which a file keeps what it remembers of a table:
/// `{"number":1,"name":"t","wire":"t","mapped":false,"columns":[["a","a","STRING"]],"generations":[[[0],[0]]]}`, each
/// generation as its columns and its key columns.
extension RememberedTable {
  public var json: String {
    var writer = JSONWriter(capacity: 512)
    writer.beginObject()
    writer.pair("number", Int64(number))
    writer.pair("name", name)
    writer.pair("wire", wireName)
    writer.pair("mapped", keyKind == .mapped)
    writer.key("columns")
    writer.beginArray()
    for column in columns {
      writer.beginArray()
      for text in [column.name, column.wireName, column.fieldType.rawValue] { writer.string(text) }
      writer.endArray()
    }
    writer.endArray()
    writer.key("generations")
    writer.beginArray()
    for generation in generations {
      writer.beginArray()
      for list in [generation.columns, generation.keyColumns] {
        writer.beginArray()
        for index in list { writer.int64(Int64(index)) }
        writer.endArray()
      }
      writer.endArray()
    }
    writer.endArray()
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads ``json``; fields that a newer release added are ignored.
  public init(json: String) throws(WireError) {
    var result = RememberedTable(
      number: 0, name: "", wireName: "", keyKind: .natural, columns: [], generations: [])
    try JSONReader.parse(Array(json.utf8)) { (reader) throws(WireError) in
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "number": result.number = Int(try reader.readInt64())
        case "name": result.name = try reader.readString()
        case "wire": result.wireName = try reader.readString()
        case "mapped": result.keyKind = try reader.readBool() ? .mapped : .natural
        case "columns": result.columns = try Self.columns(&reader)
        case "generations": result.generations = try Self.generations(&reader)
        default: try reader.skip()
        }
      }
    }
    guard (0...Self.greatestNumber).contains(result.number) else {
      throw WireError(.value, "\(result.number) is no number of a table", at: 0)
    }
    for generation in result.generations {
      for index in generation.columns + generation.keyColumns where !result.columns.indices.contains(index) {
        throw WireError(.value, "there is no column \(index)", at: 0)
      }
    }
    self = result
  }

  /// Numbers count tables; a file has far fewer.
  private static var greatestNumber: Int { 1_000_000 }

  private static func columns(_ reader: inout JSONReader) throws(WireError) -> [RememberedColumn] {
    var result: [RememberedColumn] = []
    try reader.beginArray()
    while try reader.nextElement() {
      guard let words = try reader.readStrings(), words.count >= 3, let type = FieldType(rawValue: words[2]) else {
        throw WireError(.value, "a column is its name, wire name and type", at: 0)
      }
      result.append(RememberedColumn(name: words[0], wireName: words[1], fieldType: type))
    }
    return result
  }

  private static func generations(_ reader: inout JSONReader) throws(WireError) -> [Generation] {
    var result: [Generation] = []
    try reader.beginArray()
    while try reader.nextElement() {
      var lists: [[Int]] = []
      try reader.beginArray()
      while try reader.nextElement() {
        var list: [Int] = []
        try reader.beginArray()
        while try reader.nextElement() { list.append(Int(try reader.readInt64())) }
        lists.append(list)
      }
      guard lists.count >= 2 else { throw WireError(.value, "a generation is its columns and its key", at: 0) }
      result.append(Generation(columns: lists[0], keyColumns: lists[1]))
    }
    return result
  }
}
