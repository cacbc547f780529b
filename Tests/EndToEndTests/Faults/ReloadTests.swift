// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import StageWords
import Support
import Testing
import Worker

/// SIGHUP's work while messages flow.
@Suite struct ReloadTests {
    @Test func theNextDecisionUsesTheNewRules() async throws {
        var settings = LocalCluster.Settings()
        settings.appLines = "    default_levels: {p2p: 0}\n    limits: {rate: 500}\n"
        try await Stage.with(settings) { stage in
            let worker = try await stage.worker
            try await stage.play(state: [.bind("r1")], events: [.message("r1-before", to: ["r1"])])
            let text = stage.world.configurationText
            func reload(_ text: String) async throws {
                let path = try stage.world.folder.write(Array(text.utf8), to: "carillon.yaml")
                await worker.reload(path: path, environment: [:])
            }
            try await reload(text.replacing("p2p: 0", with: "p2p: 5").replacing("rate: 500", with: "rate: 0"))
            try await stage.play(events: [.message("r1-muted", to: ["r1"])])
            try await reload("kafka: {}\n")
            try await stage.play(events: [.message("r1-still", to: ["r1"])])
            try await reload(text)
            try await stage.play(events: [.message("r1-again", to: ["r1"])])
            let seen = try await stage.look()
            #expect(seen.accepted(Line.usualToken("r1", "phone", "alert")).count == 2)
            for (message, verdict) in [
                ("r1-before", "accepted"), ("r1-muted", "suppressed"), ("r1-still", "suppressed"),
                ("r1-again", "accepted"),
            ] {
                #expect(seen.result(of: message)?["verdict"]?.string == verdict, "\(message)")
            }
            #expect(try await stage.metric("carillon_config_reloads_total", #"result="applied""#) == 2)
            #expect(try await stage.metric("carillon_config_reloads_total", #"result="refused""#) == 1)
        }
    }

    /// Its records before are dead letters; after it, its pushes go out and its numbers are there.
    @Test func anAppThatIsNewIsServedAndOneThatIsGoneStays() async throws {
        try await Stage.with { stage in
            let worker = try await stage.worker
            func other(_ line: Line) -> Line {
                var line = line
                line.value = Array(line.text.replacing(#""app":"im""#, with: #""app":"other""#).utf8)
                return line
            }
            try await stage.play(events: [other(.message("o-before", to: ["o1"]))])
            let text = stage.world.configurationText
            let start = try #require(text.firstRange(of: "  - id: im"))
            let end = try #require(text.firstRange(of: "http:\n"))
            let entry = text[start.lowerBound..<end.lowerBound]
            let two = text.replacing(
                "http:\n", with: entry.replacing("id: im", with: "id: other") + "http:\n", maxReplacements: 1)
            let path = try stage.world.folder.write(Array(two.utf8), to: "carillon.yaml")
            await worker.reload(path: path, environment: [:])
            try await stage.play(
                state: [other(.bind("o1")), .bind("i1")],
                events: [other(.message("o-after", to: ["o1"])), .message("i-after", to: ["i1"])])
            try stage.world.folder.write(Array(text.utf8), to: "carillon.yaml")
            await worker.reload(path: path, environment: [:])
            try await stage.play(events: [other(.message("o-still", to: ["o1"]))])
            let seen = try await stage.look()
            #expect(seen.letters.count == 1)
            #expect(seen.accepted(Line.usualToken("o1", "phone", "alert")).count == 2)
            #expect(seen.accepted(Line.usualToken("i1", "phone", "alert")).count == 1)
            let ready = try await stage.page("/readyz").text
            #expect(ready.contains("app other production: ok") && ready.contains("app im production: ok"))
            #expect(try await stage.metric("carillon_config_pending_keys") > 0, "its end waits for a start")
        }
    }
}
