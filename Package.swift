// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

/// One set of flags for every Swift target: language mode 6, warnings are errors.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// - Parameter embedded: files that the build puts into the module, as bytes in `PackageResources`.
func module(_ name: String, _ dependencies: [Target.Dependency] = [], embedded: [String] = []) -> Target {
    .target(
        name: name, dependencies: dependencies, resources: embedded.map { .embedInCode($0) }, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name + "Tests", dependencies: dependencies + ["Support"], swiftSettings: strict)
}

func system(_ name: String, _ pkgConfig: String, _ package: String) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// The facts about the build in `carillon --version`, set by `make release`.
let built: [CSetting] =
    ["CARILLON_COMMIT", "CARILLON_DATE"].compactMap { name in
        Context.environment[name].map { .define(name, to: "\"\($0)\"") }
    } + (Context.environment["CARILLON_TRAINED"] == nil ? [] : [.define("CARILLON_TRAINED")])

/// Set by `make fuzz`: what `Tests/FuzzTests` drives then runs under libFuzzer in place of the test runner.
let isFuzzing = Context.environment["CARILLON_FUZZ"] != nil
let fuzzed: [Target.Dependency] = [
    "APNs", "HTTP2", "EventLoop", "Redis", "JSON", "Payload", "Worker", "PushCore", "Crypto", "Telemetry",
    "Processes", "APNsProtocol", "Console", "Digits", "Kafka", "Simulator", "Recording", "WorkerConfiguration",
]
let fuzzTarget: Target =
    isFuzzing
    ? .executableTarget(
        name: "fuzz", dependencies: fuzzed, path: "Tests/FuzzTests", exclude: ["CorpusTests.swift"],
        swiftSettings: strict)
    : .testTarget(
        name: "FuzzTests", dependencies: fuzzed + ["Support"], exclude: ["Fuzzer"], swiftSettings: strict)

let package = Package(
    name: "carillon",
    products: [
        .executable(name: "carillon", targets: ["carillon"]),
        .library(name: "APNs", targets: ["APNs"]),
        .library(name: "CarillonClient", targets: ["CarillonClient"]),
    ],
    targets: [
        // C libraries, as Debian ships them.
        system("CRdkafka", "rdkafka", "librdkafka-dev"),
        system("CNghttp2", "libnghttp2", "libnghttp2-dev"),
        system("COpenSSL", "openssl", "libssl-dev"),
        // Their .pc files name flags that SwiftPM warns of; the headers are on the default path.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(name: "CSimdjsonLibrary", providers: [.apt(["libsimdjson-dev"])]),
        system("CLibevent", "libevent_openssl", "libevent-dev"),
        system("CYaml", "yaml-0.1", "libyaml-dev"),
        system("CZstd", "libzstd", "libzstd-dev"),
        .systemLibrary(name: "CSpawn"),
        .target(name: "CBuild", cSettings: built),
        // C++ imports no module map, so the library is named here.
        .target(
            name: "CSimdjson", dependencies: ["CSimdjsonLibrary"], linkerSettings: [.linkedLibrary("simdjson")]),

        // The pure core.
        module("Digits"),
        module("Queues"),
        module("APNsProtocol", ["Digits"]),
        module("PushCore", ["APNsProtocol", "Digits"]),
        module("Crypto", ["COpenSSL", "Digits"]),
        module("Payload", ["PushCore", "APNsProtocol", "JSON", "Crypto", "Digits"]),

        // For apps and their extensions: no Apple framework, no C library.
        module("CarillonClient", []),

        // Thin owners of one outside thing each.
        module("Telemetry", ["Digits"]),
        module("JSON", ["CSimdjson", "Digits"]),
        module("YAML", ["CYaml"]),
        module("Zstd", ["CZstd"]),
        module("EventLoop", ["CLibevent", "COpenSSL", "Digits", "Telemetry"]),
        module("Kafka", ["CRdkafka", "COpenSSL", "Digits", "Telemetry"]),
        module("Redis", ["CHiredis", "COpenSSL", "Digits", "EventLoop", "Telemetry"]),
        module("HTTP2", ["CNghttp2"]),

        // Recordings of topics: their lines, what is scrubbed of them, how they are replayed and judged.
        module("Recording", ["JSON", "Digits", "Queues", "Crypto", "PushCore", "Telemetry", "CBuild"]),

        // What workers do now, of what their metrics and status tell: for `top` and the operator's page.
        module("Fleet", ["JSON", "Digits"]),

        // The configuration of a worker: read, checked, printed.
        module(
            "WorkerConfiguration",
            [
                "PushCore", "Payload", "Crypto", "Telemetry", "JSON", "YAML", "Digits", "EventLoop", "Kafka", "Redis",
                "APNs",
            ]),

        // What the product is.
        module("APNs", ["APNsProtocol", "HTTP2", "Digits", "EventLoop", "Telemetry", "Crypto"]),
        module(
            "Worker",
            [
                "PushCore", "Payload", "Crypto", "Telemetry", "JSON", "YAML", "Digits", "EventLoop", "Kafka", "Redis",
                "APNs", "Fleet", "Queues", "WorkerConfiguration",
            ],
            embedded: ["style.css", "script.js", "icon.svg", "runbooks.md"].map { "Operator/Files/" + $0 }),
        module("Simulator", ["APNsProtocol", "HTTP2", "EventLoop", "JSON", "Crypto", "Digits", "Telemetry", "Queues"]),

        // Servers on this machine, for tests, demo and bench.
        module("Processes", ["CSpawn", "Telemetry"]),
        module("LocalServers", ["Processes", "Worker", "Simulator", "Kafka", "EventLoop", "Telemetry"]),

        // The executable: the commands, and what several of them share.
        module("Console", ["Processes", "EventLoop", "Telemetry", "Digits", "Zstd"]),
        module(
            "Demo",
            [
                "Console", "LocalServers", "Processes", "Recording", "Worker", "Simulator", "EventLoop", "JSON",
                "Crypto",
                "Digits",
            ]),
        module(
            "Bench",
            [
                "Console", "LocalServers", "Processes", "Worker", "Simulator", "APNs", "Payload", "PushCore", "Kafka",
                "EventLoop", "JSON", "Crypto", "Digits", "Telemetry", "Recording",
            ]),
        module("Top", ["Console", "Fleet", "EventLoop", "JSON", "Digits", "Telemetry"]),
        .executableTarget(
            name: "carillon",
            dependencies: [
                "Bench", "Demo", "Top", "Console", "Processes", "Worker", "Simulator", "Kafka", "EventLoop", "JSON",
                "Crypto",
                "Telemetry", "APNs", "Redis", "PushCore", "Payload", "Digits", "Recording", "Zstd", "HTTP2", "YAML",
                "CBuild",
            ],
            swiftSettings: strict),

        // Stands before the C library's allocator in the tests' program, and counts what each thread asks of it.
        .target(name: "CCount", path: "Tests/CCount"),
        .target(
            name: "Support",
            dependencies: ["CCount", "LocalServers", "Processes", "EventLoop", "Telemetry", "Kafka", "Crypto"],
            path: "Tests/Support", swiftSettings: strict),
        // Redis in memory, for tests that decide every time and order: its scripts run in real Lua.
        .systemLibrary(
            name: "CLua", path: "Tests/CLua", pkgConfig: "lua5.1", providers: [.apt(["liblua5.1-0-dev"])]),
        .target(
            name: "RedisModel", dependencies: ["CLua", "COpenSSL", "EventLoop"], path: "Tests/RedisModel",
            // It answers the commands of all tests in virtual time: a fifth of their CPU without the optimiser.
            swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]),
        tests("RedisModel", ["RedisModel", "Redis", "Worker", "EventLoop"]),
        // A model of a Kafka cluster in virtual time, for tests.
        .target(
            name: "KafkaModel", dependencies: ["Kafka", "CostCounting"], path: "Tests/KafkaModel",
            swiftSettings: strict),
        // What of a simulation `make cost` counts.
        .target(name: "CostCounting", path: "Tests/CostCounting", swiftSettings: strict),
        // A world of loops in virtual time: scheduler, clocks, network.
        .target(
            name: "SimulatedSystem", dependencies: ["EventLoop", "CostCounting"], path: "Tests/SimulatedSystem",
            swiftSettings: strict),
        // Workers and servers of such a world.
        .target(
            name: "SimulatedFleet",
            dependencies: [
                "SimulatedSystem", "KafkaModel", "RedisModel", "Kafka", "Worker", "Simulator", "EventLoop", "Telemetry",
                "Crypto",
            ], path: "Tests/SimulatedFleet", swiftSettings: strict),
        // The fleet in one thread: docs/simulation.md.
        .target(
            name: "Simulation",
            dependencies: [
                "SimulatedFleet", "SimulatedSystem", "KafkaModel", "RedisModel", "Kafka", "Redis", "Worker", "PushCore",
                "Simulator", "HTTP2", "EventLoop", "Telemetry", "Crypto",
            ], path: "Tests/Simulation", swiftSettings: strict),
        // What tests of the whole path say and see; and a stage for them in virtual time.
        .target(
            name: "StageWords",
            dependencies: ["LocalServers", "Simulator", "JSON", "Crypto", "Digits", "EventLoop"],
            path: "Tests/StageWords", swiftSettings: strict),
        .target(
            name: "VirtualStage",
            dependencies: [
                "StageWords", "SimulatedFleet", "SimulatedSystem", "KafkaModel", "RedisModel", "LocalServers",
                "Processes", "Worker",
                "Simulator", "Kafka", "EventLoop", "JSON", "Telemetry", "Crypto",
            ], path: "Tests/VirtualStage", swiftSettings: strict),
        tests(
            "Stage",
            [
                "VirtualStage", "KafkaModel", "StageWords", "LocalServers", "Processes", "Worker", "Simulator", "JSON",
                "Kafka",
                "PushCore", "EventLoop", "HTTP2", "Crypto", "Telemetry", "SimulatedSystem", "SimulatedFleet",
            ]),
        .executableTarget(
            name: "simulation", dependencies: ["Simulation"], path: "Tests/SimulationCommand", swiftSettings: strict),
        // The worlds of `make cost`.
        .executableTarget(
            name: "push-cost",
            dependencies: [
                "SimulatedFleet", "SimulatedSystem", "KafkaModel", "Kafka", "LocalServers", "Bench", "Worker",
                "Simulator", "APNs", "APNsProtocol", "EventLoop", "Telemetry", "CostCounting",
            ], path: "Tests/PushCost", swiftSettings: strict),
        tests("Simulation", ["Simulation", "SimulatedFleet", "KafkaModel", "Kafka", "Processes"]),
        tests("Digits", ["Digits"]),
        tests("Queues", ["Queues"]),
        tests("CarillonClient", ["CarillonClient", "Worker", "PushCore"]),
        tests("APNsProtocol", ["APNsProtocol"]),
        tests("Processes", ["Processes"]),
        tests("PushCore", ["PushCore", "JSON"]),
        tests("Crypto", ["Crypto"]),
        tests("Payload", ["Payload", "PushCore", "JSON", "Crypto"]),
        tests("Telemetry", ["Telemetry"]),
        tests("JSON", ["JSON"]),
        tests("YAML", ["YAML"]),
        tests("EventLoop", ["EventLoop", "Crypto", "Telemetry", "SimulatedSystem"]),
        tests("Kafka", ["Kafka", "Telemetry"]),
        tests("KafkaModel", ["KafkaModel", "Kafka"]),
        tests("Redis", ["Redis", "CHiredis", "Crypto", "EventLoop", "Telemetry", "SimulatedSystem"]),
        tests("HTTP2", ["HTTP2"]),
        tests(
            "APNs",
            [
                "APNs", "HTTP2", "EventLoop", "Crypto", "Digits", "Simulator", "Telemetry", "JSON", "SimulatedSystem",
            ]),
        tests(
            "Simulator", ["Simulator", "APNsProtocol", "HTTP2", "EventLoop", "Crypto", "Digits", "JSON", "Telemetry"]),
        tests(
            "Worker",
            [
                "Worker", "PushCore", "Payload", "JSON", "EventLoop", "Kafka", "Redis", "Telemetry", "Crypto", "YAML",
                "APNs", "Console", "Fleet", "SimulatedSystem", "SimulatedFleet", "KafkaModel", "RedisModel",
                "Simulator", "WorkerConfiguration",
            ]),
        tests("Console", ["Console", "Processes", "Telemetry", "Zstd"]),
        tests("Recording", ["Recording", "JSON", "PushCore", "Crypto", "Worker"]),
        tests("Bench", ["Bench", "Console", "EventLoop", "JSON", "Processes"]),
        tests("Top", ["Top", "Fleet", "Console", "EventLoop", "JSON", "Processes", "Telemetry"]),
        tests(
            "EndToEnd",
            [
                "StageWords", "Demo", "LocalServers", "Processes", "Worker", "Simulator", "Kafka", "Redis", "APNs",
                "JSON",
                "EventLoop", "Telemetry", "Crypto", "Digits", "Console", "Recording",
            ]),
        fuzzTarget,
    ],
    cxxLanguageStandard: .cxx17
)

/// Where some tests are all that is wanted, such as under a sanitizer, the others are not built: `CARILLON_TESTS=JSON,YAML`.
if let chosen = Context.environment["CARILLON_TESTS"] {
    let names = chosen.split(separator: ",").map { String($0) + "Tests" }
    package.targets.removeAll { $0.type == .test && !names.contains($0.name) }
}
