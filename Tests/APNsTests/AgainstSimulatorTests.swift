// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import HTTP2
import Simulator
import Support
import Telemetry
import Testing

@testable import APNs

/// The client against the product's own simulator, which checks every request as Apple does and keeps a ledger.
@Suite(.serialized, .timeLimit(.minutes(10))) struct AgainstSimulatorTests {
    @Test func tenThousandPushesPassApplesChecks() async throws {
        try await withSimulator { loop, world, simulator in
            await loop.run { _ in world.send(1...10_000) }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 10_000 && world.doubles == 0) }
            let counters = await simulator.counters
            #expect(counters.accepted == 10_000)
            #expect(counters.rejected.isEmpty)
            #expect(counters.tokens == 1)
            #expect(counters.streamsPeak > 1 && counters.streamsPeak <= 1000)
        }
    }

    @Test func rejectionsThatShrinkTheLimitAreObeyed() async throws {
        // The tags 240 to 255 of two thousand.
        let prefix = String(repeating: "0", count: 62) + "f"
        let rule = ScenarioRule(Self.match(prefix), .answer(ScenarioAnswer(400, "BadDeviceToken")))
        let dead = Scenario(rules: [rule])
        try await withSimulator({
            $0.shrinksOnRejection = true; $0.scenario = dead
        }) { loop, world, simulator in
            await loop.run { _ in world.send(1...2_000) }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes.count == 2_000)
                #expect(world.acceptedCount == 1_984)
                #expect(world.outcomes[240]?.tokenFate == .remove)
            }
        }
    }

    /// Faults drawn by seed, ledgers joined: one outcome per push, none lost, doubles only where a fate was unknown.
    @Test(arguments: [1, 2, 3, 4] as [UInt64]) func nothingIsLostUnderFaults(seed: UInt64) async throws {
        var limits = World.quick
        // Far above what a loaded machine needs: a deadline that answers miss only breeds more work.
        limits.answerNanos = 1_500_000_000
        limits.unknownTries = 20
        limits.connectionsMax = 2
        let hasGoAway = seed % 2 == 0
        let rules = Self.faults + (hasGoAway ? [Self.goAway] : [])
        let scenario = Scenario(rules: rules, goAwayAfterRequests: hasGoAway ? 400 : nil, seed: seed)
        try await withSimulator(limits: limits, { $0.scenario = scenario }) { loop, world, simulator in
            await loop.run { _ in world.send(1...1_500) }
            try await world.allDone()
            let entries = await simulator.entries
            let accepted = Dictionary(grouping: entries.filter { $0.status == 200 }, by: \.token)
            await loop.run { _ in
                #expect(world.doubles == 0, "seed \(seed)")
                #expect(world.acceptedCount == 1_500, "seed \(seed)")
                for tag in 1...1_500 as ClosedRange<UInt64> {
                    let seen = accepted[world.push(tag).token.hex] ?? []
                    #expect(!seen.isEmpty, "seed \(seed): \(tag) was accepted, says the client alone")
                    #expect(Set(seen.map(\.apnsID)).count == 1, "seed \(seed)")
                }
                let doubles = accepted.values.reduce(0) { $0 + $1.count - 1 }
                let unknown = Int(world.client.context.metrics.ambiguous.value)
                #expect(doubles <= unknown, "seed \(seed): \(doubles) doubles, \(unknown) unknown")
            }
        }
    }

    /// With provable faults alone every fate is known, so the second ledger line of a push would be the client's fault.
    @Test(arguments: [5, 6] as [UInt64]) func provablyUnprocessedPushesAreNeverDoubled(seed: UInt64) async throws {
        var limits = World.quick
        limits.connectionsMax = 2
        let refusal = ScenarioRule(Self.match(share: 0.02), .reset(.refusedStream))
        let goAway = ScenarioRule(Self.match(share: 0.01, count: 5), Self.goAway.action)
        let scenario = Scenario(rules: [goAway, refusal], goAwayAfterRequests: 200, seed: seed)
        try await withSimulator(limits: limits, { $0.scenario = scenario }) { loop, world, simulator in
            await loop.run { _ in world.send(1...1_500) }
            try await world.allDone()
            let accepted = Dictionary(grouping: await simulator.entries.filter { $0.status == 200 }, by: \.token)
            let faults = await simulator.counters.faults
            #expect(faults["goaway", default: 0] > 0, "seed \(seed): \(faults)")
            await loop.run { _ in
                #expect(world.doubles == 0 && world.acceptedCount == 1_500, "seed \(seed)")
                #expect(world.client.context.metrics.ambiguous.value == 0, "seed \(seed)")
                #expect(accepted.count == 1_500 && accepted.values.allSatisfy { $0.count == 1 }, "seed \(seed)")
            }
        }
    }

    static func match(_ prefix: String = "", share: Double? = nil, count: Int = .max) -> ScenarioRule.Match {
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array(prefix.utf8)
        match.share = share
        match.count = count
        return match
    }

    static var goAway: ScenarioRule {
        ScenarioRule(match(share: 0.002, count: 3), .goAway(last: .before, code: .noError, reason: "Shutdown"))
    }

    static var faults: [ScenarioRule] {
        [
            ScenarioRule(match(share: 0.02), .reset(.refusedStream)),
            ScenarioRule(match(share: 0.01), .reset(.internalError)),
            ScenarioRule(match(share: 0.02), .answer(ScenarioAnswer(503, "ServiceUnavailable"))),
            ScenarioRule(match(share: 0.01), .answer(ScenarioAnswer(429, "TooManyRequests"))),
            ScenarioRule(match(share: 0.002, count: 2), .close),
            ScenarioRule(match(share: 0.002, count: 5), .freezeStream),
        ]
    }
}
