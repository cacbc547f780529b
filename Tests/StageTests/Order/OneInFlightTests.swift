// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// One push in flight per device, whichever shard of the process has it (contract section 5, step 16).
struct OneInFlightTests {
    private static let delayMs: Int64 = 30

    private static func rule(_ status: Int, share: Double?) -> ScenarioRule {
        var match = ScenarioRule.Match()
        match.share = share
        var answer = status == 200 ? ScenarioAnswer() : ScenarioAnswer(status, "TooManyRequests")
        if status == 200 { answer.delayMs = delayMs } else { answer.retryAfterSeconds = 1 }
        return ScenarioRule(match, .answer(answer))
    }

    /// Pushes whose request came while another one's answer was still to come.
    private static func overlapping(_ pushes: [LedgerEntry]) -> Int {
        // What is accepted is answered so long after its request came, all else at once.
        let spans = pushes.map { ($0.status == 200 ? $0.atMs - delayMs : $0.atMs, $0.atMs) }.sorted { $0.1 < $1.1 }
        return zip(spans, spans.dropFirst()).filter { $1.0 < $0.1 - 1 || $1.0 > $1.1 }.count
    }

    /// Those that back off are tried again while the other shard has pushes of its own.
    @Test(.timeLimit(.minutes(5))) func norDoThoseThatAreTriedAgainAfterBackingOff() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 2
        settings.scenario = Scenario(rules: [Self.rule(429, share: 0.15), Self.rule(200, share: nil)])
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("u1")])
            for round in 0..<4 {
                try stage.play(
                    events: (0..<24).map {
                        .message(
                            "m\(round)-\($0)", to: ["u1"], conv: "c\($0 % 12)", seq: Int64(round * 2 + $0 / 12 + 1))
                    })
            }
            let pushes = try stage.look().pushes(to: token("u1", "phone"))
            #expect(pushes.contains { $0.status == 429 } && Set(pushes.map(\.connection)).count > 1)
            #expect(Self.overlapping(pushes) == 0)
            #expect(pushes.last?.json["aps"]?["badge"]?.int == 96, "the newest number is the last")
        }
    }

    @Test func pushesOfTwoShardsToOneDeviceNeverOverlap() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 2
        settings.scenario = Scenario(rules: [Self.rule(200, share: nil)])
        try Stage.with(settings) { stage in
            // Twelve conversations lie on partitions of both shards.
            let seen = try stage.play(
                state: [.bind("u1")],
                events: (0..<48).map { .message("m\($0)", to: ["u1"], conv: "c\($0 % 12)", seq: Int64($0 / 12 + 1)) })
            let pushes = seen.accepted(token("u1", "phone"))
            #expect(pushes.count == 48 && seen.doubled.isEmpty)
            #expect(Set(pushes.map(\.connection)).count > 1, "both shards pushed")
            #expect(pushes.last?.json["aps"]?["badge"]?.int == 48, "the newest number is the last")
            #expect(Self.overlapping(pushes) == 0)
        }
    }
}
