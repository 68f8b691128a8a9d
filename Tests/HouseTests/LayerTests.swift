import Testing

/// DESIGN section 4, rules 1 to 7: read from the imports and the text of every source file.
@Suite struct LayerTests {
  private let modules = Module.all

  @Test func everyFolderOfSourcesIsAKnownModule() {
    let folders = Set(SourceTree.sources.map(\.module))
    for folder in folders.sorted() {
      #expect(modules[folder] != nil, "Sources/\(folder) is not in Module.all: give it a layer and a side")
    }
  }

  /// Rules 1, 2, 3 and 5.
  @Test func importsFollowTheDirection() {
    for file in SourceTree.sources {
      guard let module = modules[file.module] else { continue }
      for name in SwiftCode.imports(file.codeLines) {
        if let reason = module.refusal(of: name, among: modules) {
          Issue.record("\(file.path) imports \(name): \(reason)")
        }
      }
    }
  }

  @Test(arguments: [
    ("CairnSQLite", "CairnRecords"), ("CairnRecords", "CSQLite"), ("CairnEngine", "CairnSQLite"),
    ("CairnEngine", "CairnTables"), ("CairnWire", "CairnEngine"), ("CairnTables", "CairnServerCore"),
    ("CairnServerCore", "CairnEngine"), ("CairnServer", "CairnClient"), ("Cairn", "CairnTesting"),
    ("CairnTables", "CMicrohttpd"), ("Cairn", "CairnCLI"), ("CairnTables", "CCurl"),
  ])
  func aViolationIsRefused(module: String, name: String) {
    #expect(modules[module]?.refusal(of: name, among: modules) != nil)
  }

  @Test(arguments: [
    ("CairnSQLite", "CSQLite"), ("CairnTables", "CairnEngine"), ("CairnClient", "CairnWire"), ("CairnClient", "CCurl"),
    ("CairnServer", "CairnWire"), ("CairnTesting", "CairnServerCore"), ("CairnCLI", "CairnServer"),
    ("CairnTables", "Foundation"),
  ])
  func theDirectionIsOpen(module: String, name: String) {
    #expect(modules[module]?.refusal(of: name, among: modules) == nil)
  }

  /// Without this, a module that a dependency depends on can be imported by chance.
  @Test func importsAreDeclaredInThePackage() {
    let declared = PackageManifest.dependencies
    #expect(declared["CairnTables"]?.contains("CairnEngine") == true, "Package.swift is not understood by this test")
    for file in SourceTree.sources {
      let names = SwiftCode.imports(file.codeLines).filter { modules[$0] != nil && $0 != file.module }
      for name in names where declared[file.module]?.contains(name) != true {
        Issue.record("\(file.path) imports \(name), which Package.swift does not give to \(file.module)")
      }
    }
  }

  /// Rule 4.
  @Test func thereIsNoMockServer() {
    for file in SourceTree.sources {
      guard file.code.lowercased().contains("mock") else { continue }
      Issue.record("\(file.path) has a mock: run CairnServerCore in memory")
    }
  }

  /// Rule 6: what decides has no time, randomness, thread, network or disk of its own.
  @Test func decisionsAreDeterministic() {
    let ambient = [
      "Date()", "Date.now", "ContinuousClock", "SuspendingClock", "SystemRandomNumberGenerator", ".random(",
      ".shuffled()",
      ".randomElement()", "UUID()", "getenv(", "ProcessInfo", "Thread", "pthread_create", "DispatchQueue",
      "DispatchSemaphore",
      "URLSession",
    ]
    let waiting = ["await ", "Task {", "Task.", "sleep("]
    for file in SourceTree.sources {
      let isStateMachine = file.name.contains("StateMachine")
      guard isStateMachine || modules[file.module]?.isDeterministic == true else { continue }
      guard Exceptions.ambient[file.path] == nil else { continue }
      for (line, word) in SourceFile.occurrences(of: ambient + (isStateMachine ? waiting : []), in: file.code) {
        Issue.record("\(file.path):\(line + 1) uses \(word): take it as a parameter")
      }
    }
  }

  /// Rule 7.
  @Test func noTypeIsNamedLikeItsModuleAndNoTargetIsOneFile() {
    for name in modules.keys.sorted() {
      let files = SourceTree.sources.filter { $0.module == name }
      let declarations = ["struct", "class", "enum", "actor", "protocol", "typealias"].map { "\($0) \(name)" }
      for file in files {
        for (line, _) in SourceFile.occurrences(of: declarations, in: file.code) {
          Issue.record("\(file.path):\(line + 1): the type \(name) has its module's name")
        }
      }
      let isEmpty = files.allSatisfy { $0.name.hasSuffix("+Module.swift") }
      #expect(isEmpty || files.count > 1, "Sources/\(name) is a target for one file")
    }
  }
}
