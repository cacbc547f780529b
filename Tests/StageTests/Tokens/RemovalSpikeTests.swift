// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Testing
import VirtualStage

/// Dead tokens by the dozen: a few are removed, then none, until the spike is over.
@Suite struct RemovalSpikeTests {
    @Test func aSpikeOfOneCauseStopsRemovalsAndIsReported() throws {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        // What is counted is counted per shard.
        settings.shards = 1
        settings.appLines = "    limits: {removals: {window_s: 10, minimum: 10, share: 0.5, cool_down_s: 40}}\n"
        try Stage.with(settings) { stage in
            let users = (0..<40).map { "spike-\($0)" }
            let dead = users.map { token($0, "phone", TokenPrefix.badToken) }
            try stage.play(state: zip(users, dead).map { .bind($0, as: $1) })
            var seen = try stage.play(events: users.map { .message("\($0)-1", to: [$0]) })
            #expect(seen.results.filter { $0["reason"]?.string == "BadDeviceToken" }.count == 40)
            #expect(seen.feedback.count == 9, "the tenth is a spike")
            let note =
                "app im production: degraded: removal of dead tokens is stopped, too many by one cause: BadDeviceToken"
            var page = try stage.page("/readyz")
            #expect(page.status == 200 && page.text.contains("\(note) (since "))
            #expect(try stage.page("/statusz").text.contains(#""cause":"BadDeviceToken""#))
            let metrics = try stage.page("/metrics").text
            #expect(metrics.contains(#"carillon_token_removals_withheld_total{app="im",reason="BadDeviceToken"} 31"#))
            #expect(metrics.contains(#"carillon_token_removal_brake{app="im",reason="BadDeviceToken"} 1"#))
            #expect(try stage.logText().contains("token removal stopped"))

            stage.wait(.seconds(38))
            #expect(try stage.page("/readyz").text.contains(note), "the cool-down is 40 s")
            try until("the cool-down is over", within: .seconds(10)) {
                page = try stage.page("/readyz")
                return page.status == 200 && !page.text.contains(note)
            }
            // Whoever was kept is refused again, and goes now.
            let kept = users.filter { user in !seen.feedback.contains { $0["uid"]?.string == user } }
            #expect(kept.count == 31)
            seen = try stage.play(events: [.message("last", to: [kept[0]])])
            #expect(seen.outcomes(of: "last") == ["\(kept[0])/phone rejected BadDeviceToken 2"])
            #expect(seen.feedback.count == 10)
        }
    }
}
