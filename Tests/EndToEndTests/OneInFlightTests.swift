import JSON
import LocalServers
import Simulator
import Support
import Testing

/// One push in flight per device, whichever shard of the process has it (contract section 5, step 16).
struct OneInFlightTests {
    private static let delayMs: Int64 = 30

    @Test func pushesOfTwoShardsToOneDeviceNeverOverlap() async throws {
        var answer = ScenarioAnswer()
        answer.delayMs = Self.delayMs
        var settings = LocalCluster.Settings()
        settings.shards = 2
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(answer))])
        try await Stage.with(settings) { stage in
            // Twelve conversations lie on partitions of both shards.
            let seen = try await stage.play(
                state: [.bind("u1")],
                events: (0..<48).map { .message("m\($0)", to: ["u1"], conv: "c\($0 % 12)", seq: Int64($0 / 12 + 1)) })
            let pushes = seen.accepted(token("u1", "phone"))
            #expect(pushes.count == 48 && seen.doubled.isEmpty)
            #expect(Set(pushes.map(\.connection)).count > 1, "both shards pushed")
            #expect(pushes.last?.json["aps"]?["badge"]?.int == 48, "the newest number is the last")
            // An answer is decided so long after its request came: what came before the last answer is closer to it.
            let answers = pushes.map(\.atMs).sorted()
            let overlapping = zip(answers, answers.dropFirst()).filter { $1 - $0 < Self.delayMs - 1 }.count
            #expect(overlapping == 0, "\(overlapping) of \(pushes.count) pushes began while another was out")
        }
    }
}
