// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// What a reload takes over, and what it says that it cannot.
struct ConfigurationChangeTests {
    private static func values(_ more: String, _ app: String = "") throws -> EffectiveConfiguration.Values {
        let yaml = ConfigurationProblemTests.good + app + more
        return try Configuration.effective(Array(yaml.utf8), source: "f").get().values
    }

    struct Row: Sendable {
        var more = ""
        var app = ""
        var applied: [String] = []
        var pending: [String] = []
    }

    private static let rows = [
        Row(),
        Row(more: "log: {level: debug}\ndrain_s: 30\n", applied: ["drain_s", "log.level"]),
        Row(more: "shards: 3\nwindow: {records: 5}\n", pending: ["shards", "window.records"]),
        Row(
            app: "    limits: {rate: 5, in_flight: 7}\n    dnd_mode: chain\n",
            applied: ["apps[im].dnd_mode", "apps[im].limits.rate"], pending: ["apps[im].limits.in_flight"]),
        Row(app: "    limits: {removals: {share: 0.9}}\n", applied: ["apps[im].limits.removals.share"]),
        Row(app: "    title: nick\n", applied: ["apps[im].title"]),
        Row(app: "    environment: sandbox\n", pending: ["apps[im].environment"]),
        Row(
            app: """
                  - id: other
                    topic: com.example.other
                    credentials: {key_file: k.p8, key_id: ABC123DEFG, team_id: DEF123GHIJ}

                """, applied: ["apps[other].id"]),
        // A default that is written out changes nothing.
        Row(more: "drain_s: 25\nlog: {level: info}\n"),
    ]

    @Test(arguments: rows) func keysAreListedByTheTimeTheyTakeEffect(_ row: Row) throws {
        let change = ConfigurationChange(from: try Self.values(""), to: try Self.values(row.more, row.app))
        #expect(change.applied.map(\.description) == row.applied)
        #expect(change.pending.map(\.description) == row.pending)
    }

    @Test func aSetsOtherKeyIsTakenOverAndAnotherSetIsNot() throws {
        func change(_ credentials: String) throws -> ConfigurationChange {
            let yaml = ConfigurationProblemTests.good.replacing(
                ConfigurationProblemTests.credentials, with: credentials)
            let values = try Configuration.effective(Array(yaml.utf8), source: "f").get().values
            return ConfigurationChange(from: try Self.values(""), to: values)
        }
        let key = try change("{key_file: other.p8, key_id: XYZ123DEFG, team_id: DEF123GHIJ}")
        #expect(key.applied.map(\.path) == ["credentials.key_file", "credentials.key_id"] && key.pending.isEmpty)
        let sets = try change("{main: {key_file: k.p8, key_id: ABC123DEFG, team_id: DEF123GHIJ}}")
        #expect(sets.applied.isEmpty && sets.pending.count == 6)
    }

    @Test func theHashIsThatOfTheValues() throws {
        let plain = try Self.values("")
        #expect(try plain.hash == Self.values("drain_s: 25\n").hash && plain.hash.utf8.count == 12)
        #expect(try plain.hash != Self.values("drain_s: 26\n").hash)
    }

    @Test func aRateThatChangesHoldsFromTheNextPush() {
        var bucket = RateBucket(perSecond: 0)
        let now: UInt64 = 10_000_000_000
        for _ in 0..<100 { #expect(bucket.take(nowNanos: now) == nil) }
        bucket.change(perSecond: 1)
        #expect(bucket.take(nowNanos: now) == nil)
        #expect(bucket.take(nowNanos: now) == now + 1_000_000_000)
        bucket.change(perSecond: 0)
        #expect(bucket.take(nowNanos: now) == nil)
    }

    @Test func aBrakesOtherLimitsHoldFromTheNextAnswer() {
        var limits = RemovalBrake.Limits()
        var brake = RemovalBrake(limits)
        for _ in 0..<10 { #expect(brake.refused(.gone, nowMs: 1_000) == .remove) }
        limits.minimum = 5
        limits.windowMs = 60_000
        brake.change(limits)
        #expect(brake.refused(.gone, nowMs: 1_000) == .withhold(isFirst: true))
    }
}
