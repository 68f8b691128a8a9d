import CairnEngine
import CairnRecords
import CairnTesting
import Foundation
import Testing

@testable import CairnAccounts

/// The crash matrix: a process ends at every single commit of a story, and the relaunched device comes to the same end.
@Suite struct AccountsCrashTests {
  /// What one device does, in steps that a crash may cut off and that are begun again after it.
  private struct Story {
    var steps: [(TestDevice) throws -> Void]
    var expected: (TestWorld, TestDevice) throws -> Void
    var prepare: (TestWorld, TestDevice) throws -> Void = { _, _ in }
  }

  /// Runs a story with a crash before the n-th commit, for every n, until a run has none left to crash at.
  private func crashEverywhere(_ story: Story) throws {
    for border in 1...200 {
      let world = try TestWorld()
      let device = try world.device()
      try story.prepare(world, device)
      device.border.diesAt = device.border.commits + border
      var hasCrashed = false
      for step in story.steps {
        do { try step(device) } catch {}
        if device.border.commits >= device.border.diesAt ?? .max {
          hasCrashed = true
          try device.relaunch()
          do { try step(device) } catch AccountsError.notFound {}
        }
      }
      device.border.diesAt = nil
      try device.relaunch()
      try world.settle([device], rounds: 3)
      try story.expected(world, device)
      #expect(try device.state().violations.isEmpty)
      if !hasCrashed { return }
    }
    Issue.record("the story has no end")
  }

  @Test("accounts.md C11, C12, C13, C14, C15: crashes between adding, choosing, deleting and sending lose nothing")
  func localChanges() throws {
    try crashEverywhere(
      Story(
        steps: [
          { try $0.add("kept") }, { try $0.add("dead") },
          { device in
            let kept = device.core.snapshot.accounts.first { $0.userName == "kept" }
            try device.core.select(kept?.id)
          }, { try $0.sync() },
          { device in
            if let dead = device.core.snapshot.accounts.first(where: { $0.userName == "dead" }) {
              try device.core.remove(dead.id)
            }
          }, { try $0.sync() },
        ],
        expected: { (world, device) throws in
          let accounts = device.core.snapshot.accounts
          #expect(accounts.map(\.userName) == ["kept"])
          guard let kept = accounts.first?.id else { return }
          #expect(device.choice == kept)
          let names = try world.names()
          #expect(names.contains("account-\(kept)") && names.contains("context-main"))
          #expect(names.count { $0.hasPrefix("account-") } - names.count { $0.hasPrefix("tombstone-") } == 1)
          #expect(device.credentials.keys == [.account(try device.scope, kept)])
          #expect(try device.core.status().pending == 0)
        }))
  }

  @Test("accounts.md C1, C2, C3, C4, C5, C6, C9, C10: crashes while fetching lose nothing and show no state between")
  func fetching() throws {
    try crashEverywhere(
      Story(
        steps: [
          { device in
            try device.sync()
            let live = device.live
            #expect(live.isEmpty || live == [Make.id(1)])
          },
          { device in
            try device.world.put(Make.account(Make.id(3)))
            try device.world.put(Make.tombstone(Make.id(1)))
            try device.sync()
          },
        ],
        expected: { (_, device) throws in
          #expect(device.live == [Make.id(3)])
          let state = try device.state()
          #expect(state.staged.isEmpty && state.markers.keys.contains(Make.instance(4)))
        },
        prepare: { world, _ in
          try world.put(Make.account(Make.id(1)))
          try world.put(Make.account(Make.id(2)))
          try world.put(Make.tombstone(Make.id(2)))
          try world.put(Make.context(Make.id(1)))
          try world.put(Make.marker(Make.instance(4)))
          try world.put(Make.tombstone(AccountID(migratedFrom: Make.instance(4))))
        }))
  }

  @Test("accounts.md C16, C8: crashes while migrating leave account and marker together, in the right order")
  func migrating() throws {
    let id = AccountID(migratedFrom: TestDevice.instance)
    try crashEverywhere(
      Story(
        steps: [{ try $0.sync() }, { try $0.sync() }],
        expected: { (world, device) throws in
          #expect(device.live == [id])
          #expect(try world.names() == ["account-\(id)", "marker-\(TestDevice.instance)"])
        },
        prepare: { _, device in
          device.keyValues.instances = [
            LegacyInstance(id: TestDevice.instance, service: "s", url: "https://x.example", flag: true)
          ]
          _ = try device.credentials.replace(
            Credential(userName: "ada", secret: Data([1]), revision: "1"), for: .legacy(TestDevice.instance))
        }))
  }

  @Test("accounts.md C20: crashes while a lost zone is refilled go on in order")
  func refilling() throws {
    try crashEverywhere(
      Story(
        steps: [{ try $0.sync() }, { try $0.sync() }],
        expected: { (world, device) throws in
          #expect(device.core.snapshot.accounts.map(\.userName) == ["live"])
          let names = try world.names()
          #expect(names.count == 3, "\(names)")
        },
        prepare: { world, device in
          let live = try device.add("live")
          let dead = try device.add("dead")
          try device.core.select(live)
          try device.sync()
          try device.core.remove(dead)
          try device.sync()
          _ = try world.cloud().deleteZones([TestWorld.zone])
        }))
  }

  @Test("accounts.md C19, A66: crashes while local accounts are adopted move each once, with its credential")
  func adopting() throws {
    try crashEverywhere(
      Story(
        steps: [{ try $0.sync() }, { _ = try $0.core.adoptLocalAccounts() }, { try $0.sync() }],
        expected: { (world, device) throws in
          #expect(device.core.snapshot.accounts.map(\.userName) == ["local"])
          guard let id = device.live.first else { return }
          #expect(try device.core.needsCredentials(id) == .no)
          #expect(device.credentials.keys == [.account(try device.scope, id)])
          #expect(try world.names() == ["account-\(id)"])
        },
        prepare: { _, device in
          try device.signOut()
          try device.add("local")
          try device.signIn("anna")
        }))
  }
}
