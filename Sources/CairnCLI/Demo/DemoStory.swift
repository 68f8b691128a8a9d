import Foundation

/// The demonstration, chapter by chapter: what is done, in plain words and as the commands that do it.
struct DemoStory {
  let world: DemoWorld
  let output: Output
  let laptop: DemoDevice
  let phone: DemoDevice
  /// One entry per sync, for `--json`.
  private(set) var syncs: [JSONValue] = []
  private var token = ""
  private var chapter = 0

  init(_ world: DemoWorld, _ output: Output) {
    self.world = world
    self.output = output
    laptop = DemoDevice(name: "laptop", file: world.folder + "/laptop.db")
    phone = DemoDevice(name: "phone", file: world.folder + "/phone.db")
  }

  mutating func tell() throws {
    try startServer()
    try connectDevices()
    try editBothOffline()
    try deleteAndReinsert()
    try parkAndReturn()
  }

  // MARK: Chapters

  private mutating func startServer() throws {
    title("A server starts, and Anna gets an account on it.")
    command("user add anna --data server")
    guard let token = try world.cairn(["user", "add", "anna", "--data", world.folder + "/server"])["token"] as? String
    else { throw CommandError(.failed, "cairn user add gave no token", remedy: "report this") }
    self.token = token
    command("serve --data server --listen 127.0.0.1:0")
    try world.startServer()
    say("listening on \(world.serverURL)")
  }

  private mutating func connectDevices() throws {
    let made = try laptop.open()
    try DemoShop.create(made)
    try DemoShop.fill(made)
    title("The laptop has a music shop: \(DemoShop.tables.count) tables, \(try laptop.rowCount()) rows.")
    try prepare(laptop, mode: "create")
    try sync(laptop)

    try DemoShop.create(phone.open())
    title("The phone has the same tables, all empty.")
    try prepare(phone, mode: "join")
    try sync(phone)
    say("the phone now has \(try phone.rowCount()) rows")
  }

  private mutating func editBothOffline() throws {
    title("Both are used without a connection, and touch the same rows.")
    try sql(laptop, "UPDATE customer SET city = 'Porto' WHERE email = 'ines@example.org'")
    try sql(phone, "UPDATE customer SET phone = '555-0199' WHERE email = 'ines@example.org'")
    try sql(laptop, "UPDATE track SET price = 0.99 WHERE name = 'Windfall'")
    try sql(phone, "UPDATE track SET price = 1.49 WHERE name = 'Windfall'")
    try sql(laptop, "INSERT INTO artist (name) VALUES ('North Pier')")
    try sql(phone, "INSERT INTO artist (name) VALUES ('Kite Weather')")
    try sql(phone, "INSERT INTO album (title, artist_id) SELECT 'Gusts', id FROM artist WHERE name = 'Kite Weather'")
    try settle()
    try show(
      "different fields of a customer: both edits stay",
      "SELECT city || ', ' || phone FROM customer WHERE email = 'ines@example.org'")
    try show("the same field: the later edit wins", "SELECT price FROM track WHERE name = 'Windfall'")
    try show(
      "two new artists that both devices had numbered 6: two artists",
      "SELECT group_concat(name, ', ') FROM (SELECT name FROM artist WHERE id > 5 ORDER BY name)")
    try show(
      "the new album still belongs to its artist",
      "SELECT a.name FROM album JOIN artist a ON a.id = artist_id WHERE title = 'Gusts'")
  }

  private mutating func deleteAndReinsert() throws {
    title("Rows are deleted, and one comes back.")
    try sql(phone, "UPDATE voucher SET note = 'scribbled before the delete' WHERE code = 'AUTUMN'")
    try sql(laptop, "DELETE FROM voucher WHERE code = 'AUTUMN'")
    try sql(laptop, "INSERT INTO voucher VALUES ('AUTUMN', 20, NULL)")
    try sql(laptop, "DELETE FROM invoice WHERE day = '2026-10-01'")
    try sql(phone, "DELETE FROM playlist WHERE name = 'Rain'")
    try settle()
    try show(
      "the voucher is the new one: nothing from before its delete came back",
      "SELECT percent || ' %, note ' || ifnull(note, 'NULL') FROM voucher WHERE code = 'AUTUMN'")
    try show(
      "the deleted invoice is gone, with its lines",
      "SELECT count(*) FROM invoice_line LEFT JOIN invoice i ON i.id = invoice_id WHERE ifnull(day, '2026-10-01') = '2026-10-01'"
    )
    try show(
      "the deleted playlist is gone, with its entries", "SELECT count(*) FROM playlist_track WHERE playlist = 'Rain'")
  }

  private mutating func parkAndReturn() throws {
    title("Both add a track 5 to one album, where only one can be.")
    let insert = "INSERT INTO track (album_id, position, name, seconds, price) SELECT id, 5, "
    try sql(laptop, insert + "'Vinegar', 201, 1.29 FROM album WHERE title = 'Paper Orchard'")
    try sql(phone, insert + "'Wasps', 187, 1.29 FROM album WHERE title = 'Paper Orchard'")
    try settle()
    try show("one is in the album, the same on both", "SELECT name FROM track WHERE position = 5")
    command("parked laptop.db")
    for record in try world.cairn(["parked", laptop.file])["parked"] as? [[String: Any]] ?? [] {
      say("the other is parked, not dropped: table \(record["table"] ?? "?"), reason \(record["reason"] ?? "?")")
    }
    say("the laptop makes room")
    try sql(laptop, "UPDATE track SET position = 6 WHERE position = 5")
    try settle()
    try show(
      "now both are there",
      "SELECT group_concat(name, ', ') FROM (SELECT name FROM track WHERE position > 4 ORDER BY 1)")
  }

  // MARK: Steps

  private func prepare(_ device: DemoDevice, mode: String) throws {
    command("init \(device.name).db --server \(world.serverURL) --token … --mode \(mode)")
    try world.cairn(["init", device.file, "--server", world.serverURL, "--token", token, "--mode", mode])
  }

  private mutating func sync(_ device: DemoDevice) throws {
    let result = try world.cairn(["sync", device.file])
    let keys = ["saved", "deleted", "fetched", "removed", "conflicts", "parked"]
    let counts = keys.map { (key: $0, count: (result[$0] as? NSNumber)?.intValue ?? 0) }
    syncs.append(
      .object(
        [.init(key: "device", value: .string(device.name))]
          + counts.map { .init(key: $0.key, value: JSONValue($0.count)) }))
    let text = counts.filter { $0.count > 0 }.map { "\($0.key) \($0.count)" }.joined(separator: ", ")
    command("sync \(device.name).db", then: text.isEmpty ? "nothing to do" : text)
  }

  /// Until both have seen all: the first sends, the second fetches and sends, the first fetches.
  private mutating func settle() throws {
    try sync(laptop)
    try sync(phone)
    try sync(laptop)
  }

  private func sql(_ device: DemoDevice, _ statement: String) throws {
    output.line("   \(device.name)> \(statement)")
    try device.write(statement)
    // The next edit, on the other device, is a later one: clocks count milliseconds.
    usleep(2_000)
  }

  // MARK: Text

  private mutating func title(_ text: String) {
    chapter += 1
    output.line("\n\(chapter). \(text)")
  }

  private func command(_ text: String, then result: String = "") {
    output.line("   $ cairn \(text)" + (result.isEmpty ? "" : "   → \(result)"))
  }

  private func say(_ text: String) { output.line("   \(text)") }

  /// What a query gives on both devices.
  private func show(_ text: String, _ query: String) throws {
    let (one, other) = (try laptop.text(query), try phone.text(query))
    say(one == other ? "✓ \(text): \(one)" : "✗ \(text): \(one) on the laptop, \(other) on the phone")
  }
}
