import JSON
import LocalServers
import Simulator
import StageWords
import Support
import Testing

/// Dead tokens by the dozen: a few are removed, then none, until the spike is over.
@Suite struct RemovalSpikeTests {
    @Test func aSpikeOfOneCauseStopsRemovalsAndIsReported() async throws {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        // What is counted is counted per shard.
        settings.shards = 1
        settings.appLines = "    limits: {removals: {window_s: 10, minimum: 10, share: 0.5, cool_down_s: 40}}\n"
        try await Stage.with(settings) { stage in
            let users = (0..<40).map { "spike-\($0)" }
            let dead = users.map { token($0, "phone", TokenPrefix.badToken) }
            try await stage.play(state: zip(users, dead).map { .bind($0, as: $1) })
            var seen = try await stage.play(events: users.map { .message("\($0)-1", to: [$0]) })
            #expect(seen.results.filter { $0["reason"]?.string == "BadDeviceToken" }.count == 40)
            #expect(seen.feedback.count == 9, "the tenth is a spike")
            let note =
                "app im production: degraded: removal of dead tokens is stopped, too many by one cause: BadDeviceToken"
            var page = try await stage.page("/readyz")
            #expect(page.status == 200 && page.text.contains("\(note)\n"))
            #expect(try await stage.page("/statusz").text.contains(#""cause":"BadDeviceToken""#))
            let metrics = try await stage.page("/metrics").text
            #expect(metrics.contains(#"carillon_token_removals_withheld_total{app="im",reason="BadDeviceToken"} 31"#))
            #expect(metrics.contains(#"carillon_token_removal_brake{app="im",reason="BadDeviceToken"} 1"#))
            #expect(try stage.logText().contains("token removal stopped"))

            try await until("the cool-down is over") {
                page = try await stage.page("/readyz")
                return page.status == 200 && !page.text.contains(note)
            }
            // Whoever was kept is refused again, and goes now.
            let kept = users.filter { user in
                !seen.feedback.contains { $0["uid"]?.string == user }
            }
            #expect(kept.count == 31)
            seen = try await stage.play(events: [.message("last", to: [kept[0]])])
            #expect(seen.outcomes(of: "last") == ["\(kept[0])/phone rejected BadDeviceToken 2"])
            #expect(seen.feedback.count == 10)

            let path = try stage.world.writeConfiguration()
            func restore(_ more: String...) async throws -> JSONTree {
                let words = [
                    "tokens", "restore", "--config", path, "--app", "im", "--cause", "BadDeviceToken", "--json",
                ]
                let run = try await offPool { try CommandRun(words: words + more) }
                #expect(run.code == 0)
                return try JSONTree(parsing: Array(run.output.utf8))
            }
            let dry = try await restore("--since", "2020-01-01T00:00:00+08:00", "--dry-run")
            #expect(dry["found"]?.int == 10 && dry["restored"]?.int == 10)
            #expect(try await restore("--since", String(nowMs + 1000))["found"]?.int == 0)
            #expect(try await restore("--since", "2020-01-01")["restored"]?.int == 10)
            seen = try await stage.play(events: [.message("again", to: [kept[0]])])
            #expect(seen.outcomes(of: "again") == ["\(kept[0])/phone rejected BadDeviceToken 3"])
        }
    }
}
