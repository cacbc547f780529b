// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Processes
import Simulator
import Support
import Testing

/// A world of `carillon generate`, played by `carillon replay` to a running worker.
struct GeneratorReplayTests {
    @Test func aMadeUpWorldIsPlayedWithoutLossOrDouble() async throws {
        try await Stage.with { stage in
            let folder = stage.world.folder
            let files = [folder.file("world.ndjson.zst"), folder.file("redis.txt"), folder.file("presence.txt")]
            let made = try await offPool {
                try CommandRun(
                    "generate", "--out", files[0], "--redis-out", files[1], "--presence-out", files[2], "--seed", "11",
                    "--users", "60", "--groups", "6", "--largest", "40", "--messages", "250", "--announcements", "2",
                    "--duration", "2m", "--read-storms", "1", "--bind-storms", "2", "--flapping", "0.1", "--json")
            }
            #expect(made.code == 0, "\(made.errors)")
            let summary = try JSONTree(parsing: Array(made.output.utf8))
            let port = stage.world.redis.port
            let script = #"redis-cli -p "$1" --pipe <"$2" && cut -d' ' -f2- <"$3" | redis-cli -p "$1" >/dev/null"#
            let filled = try await offPool {
                try FinishedProcess.run("sh", ["-c", script, "sh", String(port), files[1], files[2]])
            }
            #expect(filled.exitCode == 0 && filled.output.contains("errors: 0"), "\(filled.output)")
            let path = try stage.world.writeConfiguration()
            let run = try await offPool {
                try CommandRun(
                    "replay", "--config", path, "--in", files[0], "--shift-times", "--json", "--wait", "90s")
            }
            let report = try JSONTree(parsing: Array(run.output.utf8))
            let text = "\(run.output)\(run.errors)"
            #expect(run.code == 0 && report["well"]?.bool == true, "\(text)")
            #expect(report["written"]?.int == summary["records"]?.int && report["bad"]?.int == 0, "\(text)")
            let worker = try #require(report["worker"])
            #expect(worker["settled"]?.int == worker["wanted"]?.int && worker["duplicates"]?.int == 0, "\(text)")
            let recipients = try #require(worker["recipients"])
            #expect(recipients["expected"]?.int == recipients["with_outcome"]?.int, "\(text)")
            #expect((recipients["open_audiences"]?.int ?? 0) > 0 && recipients["lost"]?.int == 0, "\(text)")
            // The announcements alone go to forty members each, of whom nearly all have a token.
            #expect(await stage.world.simulator.entries.count > 150)
        }
    }

    @Test(
        arguments: [
            ["--users", "1"], ["--largest", "20000"], ["--flapping", "0.1"], ["--flapping", "x", "--redis-out", "f"],
            ["--presence-out", "f"], ["--start", "soon"], ["--duration", "0"], ["--environment", "test"],
            ["--seed", "-1"], ["--redis-out", "-"], ["--zipf", "9"], ["--app", ""],
        ])
    func impossibleSettingsOfAWorldAreWrongUsage(words: [String]) throws {
        let run = try CommandRun(words: ["generate", "--out", "-"] + words)
        #expect(run.code == 64 && run.output.isEmpty && run.errors.contains("carillon generate: "), "\(run.errors)")
    }
}
