// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import SimulatedSystem
import Simulator
import Telemetry
import Testing

@testable import APNs

/// The client and the product's simulator in one thread, over a virtual network.
@Suite("The client in virtual time", .timeLimit(.minutes(2)))
struct VirtualTimeTests {
    /// All of one run.
    private final class Run: APNsClientDelegate {
        let system: SimulatedSystem
        let client: SimulatedProcess
        let server: SimulatedProcess
        let clientLoop: Loop
        let serverLoop: Loop
        var apns: APNsClient?
        var simulator: APNsSimulator?
        var outcomes: [UInt64: PushOutcome] = [:]
        var doubles = 0

        init(seed: UInt64, scenario: Scenario = Scenario()) throws {
            system = SimulatedSystem(seed: seed)
            client = system.makeProcess("worker", host: "10.0.0.1")
            server = system.makeProcess("apns", host: "10.0.0.9")
            clientLoop = try client.makeLoop("worker")
            serverLoop = try server.makeLoop("apns")
            system.network.names["apns.test"] = ["10.0.0.9"]
            let key = try World.key.get()
            var configuration = SimulatorConfiguration()
            configuration.host = "10.0.0.9"
            configuration.port = 443
            configuration.topics = ["com.example.im"]
            configuration.keys = [
                ProviderKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", publicKey: try key.publicKey())
            ]
            configuration.ledger = .memory
            configuration.scenario = scenario
            server.run(on: serverLoop) {
                simulator = try? APNsSimulator(loop: serverLoop, configuration: configuration)
            }
            var limits = APNsLimits()
            // Each cut leaves pushes of unknown fate.
            limits.unknownTries = 20
            client.run(on: clientLoop) {
                apns = try? APNsClient(
                    loop: clientLoop, endpoint: APNsEndpoint(host: "apns.test"),
                    credential: .token(key: key, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"), limits: limits,
                    metrics: APNsMetrics(registry: MetricsRegistry(), app: "im"), delegate: self)
            }
        }

        func send(_ tags: ClosedRange<UInt64>) throws {
            let headers = try PushHeaders(topic: "com.example.im", pushType: .alert)
            let pushes = try tags.map { tag in
                let digits = String(tag, radix: 16)
                return Push(
                    tag: tag,
                    token: try #require(DeviceToken(String(repeating: "0", count: 64 - digits.count) + digits)),
                    headers: headers, id: PushID(high: 0x4000, low: 1 << 63 | tag),
                    payload: Array(#"{"aps":{"alert":"hello"}}"#.utf8))
            }
            client.run(on: clientLoop) {
                for push in pushes { _ = apns?.send(push) }
            }
        }

        func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
            if outcomes.updateValue(outcome, forKey: tag) != nil { doubles += 1 }
        }

        func end() {
            client.run(on: clientLoop) { apns = nil }
            server.run(on: serverLoop) {
                simulator?.close()
                simulator = nil
            }
            system.end()
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func eachPushEndsOnceThoughConnectionsAreCutAnywhere(seed: UInt64) throws {
        func run() throws -> (turns: Int, fingerprint: UInt64, nanos: UInt64) {
            let run = try Run(seed: seed)
            let system = run.system
            try run.send(1...1_000)
            for _ in 0..<5 {
                system.after(nanos: system.number(0...30_000_000)) { system.network.cut(to: "10.0.0.9:443") }
            }
            #expect(system.run(nanos: 120_000_000_000) { run.outcomes.count == 1_000 }, "seed \(seed)")
            let accepted = Dictionary(
                grouping: run.simulator?.entries.filter { $0.status == 200 } ?? [], by: \.token)
            for (tag, outcome) in run.outcomes {
                let token = String(tag, radix: 16)
                let isAccepted = accepted.keys.contains { $0.hasSuffix("0" + token) }
                // A push of unknown fate ends as such where the budget of retries is used up.
                if case .unknown = outcome { continue }
                #expect(outcome.isJudgement && isAccepted, "seed \(seed): \(tag) \(outcome)")
            }
            #expect(run.doubles == 0, "seed \(seed)")
            let unknown = Int(run.apns?.context.metrics.ambiguous.value ?? 0)
            #expect(accepted.values.reduce(0) { $0 + $1.count - 1 } <= unknown, "seed \(seed)")
            defer { run.end() }
            return (system.turns, system.fingerprint, system.nowNanos)
        }
        let (one, two) = (try run(), try run())
        #expect(one == two, "seed \(seed)")
    }

    @Test func aServerThatIsAwayForAnHourCostsNoRealTime() throws {
        let run = try Run(seed: 7)
        defer { run.end() }
        run.system.network.path(from: "10.0.0.1", to: "10.0.0.9:443").refusesUntilNanos = 3_600_000_000_000
        try run.send(1...10)
        run.system.run(nanos: 3_500_000_000_000)
        #expect(run.outcomes.isEmpty && run.apns?.isUsable == false)
        #expect(run.system.run(nanos: 200_000_000_000) { run.outcomes.count == 10 })
    }
}
