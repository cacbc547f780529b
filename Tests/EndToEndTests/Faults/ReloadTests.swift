import JSON
import LocalServers
import Support
import Testing
import Worker

/// SIGHUP's work while messages flow.
@Suite struct ReloadTests {
    @Test func whatIsDecidedNextGoesByTheNewRules() async throws {
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
}
