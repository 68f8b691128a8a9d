// swift-tools-version:6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
]

func library(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource]? = nil) -> Target {
  .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource]? = nil) -> Target {
  .testTarget(name: name, dependencies: dependencies, resources: resources, swiftSettings: strict)
}

let package = Package(
  name: "cairn",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Cairn", targets: ["Cairn"]),
    .library(name: "CairnAccounts", targets: ["CairnAccounts"]),
    .library(name: "CairnSodium", targets: ["CairnSodium"]),
    .executable(name: "cairn", targets: ["CairnCLI"]),
  ],
  traits: [
    .trait(
      name: "Server",
      description: "The commands that run a server. An app that depends on the library Cairn never needs its libraries."
    ),
    .default(enabledTraits: ["Server"]),
  ],
  targets: [
    // L0: system libraries, module maps only
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl",
      providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .systemLibrary(
      name: "CMicrohttpd", pkgConfig: "libmicrohttpd",
      providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
    .systemLibrary(
      name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(
      name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl"])]),
    .systemLibrary(
      name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"]), .brew(["libsodium"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),

    // L1
    library("CairnSQLite", ["CSQLite"]),
    library("CairnRecords", []),

    // L2
    library("CairnWire", ["CairnRecords", "CZlib"]),
    library("CairnEngine", ["CairnRecords"]),
    library("CairnServerCore", ["CairnRecords", "CairnSQLite"]),

    // L3
    library("CairnTables", ["CairnSQLite", "CairnRecords", "CairnWire", "CairnEngine"]),

    library("CairnAccounts", ["CairnSQLite", "CairnRecords", "CairnWire", "CairnEngine"]),

    // L4
    library("CairnSodium", ["CairnAccounts", "CSodium"]),
    library(
      "CairnClient",
      [
        "CairnRecords", "CairnWire", "CairnEngine",
        .target(name: "CCurl", condition: .when(platforms: [.linux, .android])),
      ]),
    library(
      "CairnServer", ["CairnRecords", "CairnWire", "CairnServerCore", "CMicrohttpd", "CCrypto"],
      resources: [.embedInCode("Console/Files")]),
    library("CairnPostgres", ["CairnRecords", "CairnServerCore", "CPostgres"]),
    library("CairnTesting", ["CairnRecords", "CairnSQLite", "CairnEngine", "CairnServerCore"]),

    // L5
    library("Cairn", ["CairnRecords", "CairnSQLite", "CairnEngine", "CairnTables", "CairnClient"]),

    library(
      "CairnSimulation",
      [
        "Cairn", "CairnRecords", "CairnSQLite", "CairnEngine", "CairnServerCore", "CairnTables", "CairnTesting",
      ]),

    // L6
    .executableTarget(
      name: "CairnCLI",
      dependencies: [
        "Cairn", "CairnRecords", "CairnSQLite", "CairnEngine", "CairnTables", "CairnAccounts", "CairnSodium",
        "CairnClient", "CairnSimulation",
        .target(name: "CairnServer", condition: .when(traits: ["Server"])),
        .target(name: "CairnServerCore", condition: .when(traits: ["Server"])),
        .target(name: "CairnPostgres", condition: .when(traits: ["Server"])),
      ],
      swiftSettings: strict),

    // An app that shows how logins are kept
    .executableTarget(
      name: "FeedReader", dependencies: ["Cairn", "CairnAccounts", "CairnClient", "CairnEngine", "CairnRecords"],
      path: "Examples/FeedReader", swiftSettings: strict),

    // Measures for scripts/bench what can't be told apart from outside.
    .executableTarget(
      name: "CairnTiming", dependencies: ["Cairn", "CairnRecords", "CairnEngine", "CairnTables", "CairnClient"],
      path: "Benchmarks/CairnTiming", swiftSettings: strict),

    // Many devices on one server, for scripts/load.
    .executableTarget(
      name: "CairnLoad",
      dependencies: [
        "Cairn", "CairnRecords", "CairnSQLite", "CairnEngine", "CairnTables", "CairnClient", "CairnTesting",
      ],
      path: "Benchmarks/CairnLoad", swiftSettings: strict),

    tests("HouseTests", []),
    tests("CairnSQLiteTests", ["CairnSQLite"]),
    tests("CairnRecordsTests", ["CairnRecords"]),
    tests("CairnWireTests", ["CairnWire", "FuzzSupport"], resources: [.copy("Golden")]),
    tests(
      "CairnEngineTests",
      [
        "Cairn", "CairnEngine", "CairnRecords", "CairnSQLite", "CairnTables", "CairnTesting", "FuzzSupport",
        "ProcessSupport",
      ]),
    tests(
      "CairnServerCoreTests",
      ["CairnServerCore", "CairnPostgres", "CairnTesting", "FuzzSupport", "ProcessSupport", "StoreSupport"]),
    tests(
      "CairnServerTests",
      ["CairnServer", "CairnClient", "CairnPostgres", "CairnTesting", "FuzzSupport", "ProcessSupport", "StoreSupport"]),
    .target(name: "ProcessSupport", path: "Tests/ProcessSupport", swiftSettings: strict),
    .target(
      name: "StoreSupport", dependencies: ["CairnServerCore", "CairnPostgres", "CPostgres", "ProcessSupport"],
      path: "Tests/StoreSupport", swiftSettings: strict),
    .target(name: "FuzzSupport", path: "Tests/FuzzSupport", swiftSettings: strict),
    tests("CairnCLITests", ["CairnCLI", "FuzzSupport", "ProcessSupport"]),
    tests("CairnProcessTests", ["ProcessSupport", "StoreSupport", "CairnTesting"]),
    tests("CairnClientTests", ["CairnClient", "CairnServer", "CairnServerCore", "CairnTesting", "ProcessSupport"]),
    tests("CairnSimulationTests", ["CairnSimulation"]),
    tests(
      "CairnAccountsTests", ["Cairn", "CairnAccounts", "CairnTables", "CairnTesting", "FuzzSupport", "ProcessSupport"]),
    tests("CairnSodiumTests", ["CairnSodium", "CairnAccounts", "ProcessSupport"]),
    tests("ExampleTests", ["FeedReader", "CairnAccounts", "CairnRecords", "CairnTesting", "ProcessSupport"]),
    tests("CairnTablesTests", ["Cairn", "CairnTables", "CairnServerCore", "CairnTesting", "CSQLite", "FuzzSupport"]),
  ]
)
