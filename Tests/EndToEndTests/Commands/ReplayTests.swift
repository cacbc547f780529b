// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import JSON
import LocalServers
import Processes
import Recording
import Simulator
import StageWords
import Support
import Testing

/// `carillon replay` beside a running worker.
struct ReplayTests {
    /// Three users' binds and six messages, one of them to two, one a revoke, one bad event.
    private static func input(_ world: LocalCluster) throws -> String {
        let users = ["r1", "r2", "r3"]
        var lines = users.map { Line.bind($0) }
        for index in 0..<4 {
            let to = index == 3 ? ["r1", "r2"] : [users[index]]
            lines.append(.message("m\(index)", to: to, conv: "c-\(to[0])", seq: Int64(10 + index)))
        }
        lines.append(.read("r3", conv: "c-r3", #""up_to_seq":12"#))
        lines.append(.revoke("v1", of: "m0", to: "r1"))
        lines.append(Line(key: nil, value: Array(#"{"v":1,"kind":"message","app":"im"}"#.utf8)))
        return try world.folder.write(Array(lines.map(\.text).joined(separator: "\n").utf8), to: "in.ndjson")
    }

    private static func replay(_ world: LocalCluster, _ words: [String]) async throws -> (Int32, JSONTree) {
        let path = try world.writeConfiguration()
        let run = try await offPool {
            try CommandRun(words: ["replay", "--config", path, "--json", "--wait", "60s"] + words)
        }
        guard let line = run.lines.first else { throw SetupFault("no report: \(run.errors)") }
        return (run.code, try JSONTree(parsing: Array(line.utf8)))
    }

    @Test func theReportShowsTheWorkersOutcomes() async throws {
        try await Stage.with { stage in
            let world = stage.world
            let input = try Self.input(world)
            // The state first, as it would have come.
            let page = world.folder.file("report.html")
            let (code, report) = try await Self.replay(world, ["--in", input, "--html", page, "--producers", "3"])
            let worker = try #require(report["worker"])
            #expect(code == 0, "\(String(decoding: report.bytes, as: UTF8.self))")
            #expect(report["written"]?.int == 10 && report["bad"]?.int == 1 && report["well"]?.bool == true)
            #expect(worker["wanted"]?.int == 10 && worker["settled"]?.int == 10)
            let recipients = try #require(worker["recipients"])
            #expect(recipients["expected"]?.int == 6 && recipients["with_outcome"]?.int == 6)
            #expect(recipients["lost"]?.int == 0 && worker["duplicates"]?.int == 0)
            #expect((worker["latency_ms"]?["written_to_outcome"]?["count"]?.int ?? 0) >= 6)
            #expect((worker["latency_ms"]?["lanes"]?["direct"]?["count"]?.int ?? 0) >= 6)
            let html = String(decoding: try readFile(page), as: UTF8.self)
            #expect(html.contains("</html>") && html.contains("everything is settled") && html.contains("<svg"))

            // The same once more: their marks say that they are done.
            let (again, repeats) = try await Self.replay(world, ["--in", input])
            #expect(again == 0 && repeats["worker"]?["all_repeats"]?.bool == true)
            #expect(repeats["worker"]?["recipients"]?["repeats"]?.int == 6)
            #expect(repeats["worker"]?["recipients"]?["with_outcome"]?.int == 0)
            let path = try world.writeConfiguration()
            let told = try await offPool { try CommandRun("replay", "--config", path, "--in", input, "--wait", "60s") }
            #expect(told.code == 0 && told.output.contains("all recipients are repeats"), "\(told.output)")

            // And with new names: nothing is a repeat, a read covers what it covered, nothing else.
            let pushed = await world.simulator.entries.count
            let (fresh, renewed) = try await Self.replay(world, ["--in", input, "--fresh-ids"])
            #expect(fresh == 0, "\(String(decoding: renewed.bytes, as: UTF8.self))")
            #expect(renewed["worker"]?["recipients"]?["with_outcome"]?.int == 6)
            #expect(renewed["worker"]?["recipients"]?["repeats"]?.int == 0)
            #expect(await world.simulator.entries.count > pushed)
        }
    }

    @Test func aLoopGoesOnForItsDurationAndNeverRepeatsItself() async throws {
        try await Stage.with { stage in
            let input = try Self.input(stage.world)
            let (code, report) = try await Self.replay(
                stage.world,
                [
                    "--in", input, "--loop", "--duration", "2s", "--rate", "40", "--ramp", "1s", "--fresh-ids",
                    "--shift-times", "--producers", "2",
                ])
            #expect(code == 0, "\(String(decoding: report.bytes, as: UTF8.self))")
            #expect((report["passes"]?.int ?? 0) > 1)
            // Half of the rate in the first second, all of it in the next ones: a busy machine ends late.
            let (written, seconds) = (try #require(report["written"]?.int), try #require(report["seconds"]?.double))
            #expect(Double(written) <= 40 * (seconds - 0.5) + 2 && written > 10, "\(written) in \(seconds) s")
            let recipients = report["worker"]?["recipients"]
            #expect(recipients?["repeats"]?.int == 0 && recipients?["repeated_in_file"]?.int == 0)
            #expect(recipients?["expected"]?.int == recipients?["with_outcome"]?.int)
        }
    }

    @Test func aScrubbedRecordingReachesNobody() async throws {
        let folder = try TemporaryFolder()
        let file = folder.file("scrubbed.ndjson.zst")
        let own = token("s1", "phone")
        try await Stage.with { stage in
            try await stage.play(
                state: [.bind("s1")],
                events: [.message("s-m", to: ["s1"], push: #""content":"Meet me at the harbour""#)])
            let path = try stage.world.writeConfiguration()
            let record = try await offPool {
                try CommandRun(
                    "record", "--config", path, "--topic", "user-state", "--topic", "events", "--topic", "results",
                    "--out", file, "--until-end", "--scrub")
            }
            #expect(
                record.code == 0 && record.output.contains("scrubbed: 1 tokens"), "\(record.output)\(record.errors)")
        }
        let all = try RecordTests.lines(file).map { RecordLineWriter().bytes(of: $0) }
        let text = all.map { String(decoding: $0, as: UTF8.self) }.joined()
        #expect(!text.contains(own) && !text.contains("harbour") && !text.contains("Nick") && text.contains("s-m"))
        // Elsewhere it plays like the original.
        try await Stage.with { stage in
            for (topic, expected) in [("im.user-state", 0), ("im.events", 1)] {
                let lines = try RecordTests.lines(file).filter { $0.topic == topic }
                let bytes = lines.flatMap { RecordLineWriter().bytes(of: $0) }
                let input = try stage.world.folder.write(bytes, to: topic)
                let (code, report) = try await Self.replay(stage.world, ["--in", input, "--shift-times"])
                #expect(code == 0 && report["worker"]?["settled"]?.int == 1)
                #expect(report["worker"]?["recipients"]?["with_outcome"]?.int == Int64(expected))
            }
            let pushes = await stage.world.simulator.entries
            #expect(pushes.count == 1 && pushes.allSatisfy { $0.token != own && $0.token.utf8.count == 64 })
        }
    }

    /// The first record is due when the writing begins, however long the look at the file and the brokers took.
    @Test func recordsAreWrittenAsFarApartAsTheirPaceSays() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let lines = (0..<11).flatMap { Line.message("p-\($0)", to: ["p"]).text.utf8 + [0x0A] }
        let input = try world.folder.write(lines, to: "in.ndjson")
        let replay = ["replay", "--config", path, "--in", input, "--topic", "sms", "--rate", "20"]
        let begunMs = nowMs
        let run = try await offPool { try CommandRun(words: replay) }
        #expect(run.code == 0 && run.output.contains("no worker reads these topics"), "\(run.errors)")
        let out = world.folder.file("out.ndjson")
        let record = try await offPool {
            try CommandRun("record", "--config", path, "--topic", "sms", "--until-end", "--out", out)
        }
        #expect(record.code == 0, "\(record.errors)")
        let times = try RecordTests.lines(out).compactMap(\.timestampMs)
        // Ten steps of 50 ms, and a millisecond of rounding. What is late is made up for, so that only the end is sure.
        #expect(times.count == 11 && (times.max() ?? 0) - begunMs >= 499)
        await world.close()
    }

    /// A worker that forgets results, and one that forgets what it has done.
    @Test(arguments: [("drop-result", "lost", 1), ("no-dedup", "duplicates", 2)])
    func lostAndDoubledPushesAreFound(defect: String, found: String, times: Int) async throws {
        let stage = try await Stage()
        let worker = try await WorkerRun(stage, defect: defect)
        let users = (0..<4).map { "w\($0)" }
        let binds = users.flatMap { Line.bind($0).text.utf8 + [0x0A] }
        let state = try stage.world.folder.write(binds, to: "state.ndjson")
        let (bound, _) = try await Self.replay(stage.world, ["--in", state])
        let once = (0..<128).flatMap { Line.message("w-\($0)", to: [users[$0 % 4]]).text.utf8 + [0x0A] }
        let events = try stage.world.folder.write((0..<times).flatMap { _ in once }, to: "events.ndjson")
        let (code, report) = try await Self.replay(stage.world, ["--in", events])
        #expect(bound == 0 && code == 1, "\(String(decoding: report.bytes, as: UTF8.self))")
        let worse = report["worker"]?["recipients"]?[found]?.int ?? report["worker"]?[found]?.int ?? 0
        #expect(worse > 0 && report["well"]?.bool == false, "\(String(decoding: report.bytes, as: UTF8.self))")
        await worker.kill()
        await stage.close()
    }

    /// The report then tells of what was done.
    @Test func ctrlCEndsItWithTheReport() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let input = try Self.input(world)
        let out = world.folder.file("out")
        let script = #"echo begun; exec "$0" replay --config "$1" --in "$2" --rate 2 --loop --duration 1h --json >"$3""#
        let process = try await offPool {
            try ServerProcess("sh", ["-c", script, CommandRun.binary.path, path, input, out], readyLine: "begun")
        }
        try await until("records were written") { try world.records(of: "im.user-state").count >= 3 }
        process.send(SIGINT)
        try await until("it has ended") { !process.isRunning }
        #expect(process.exitCode == 1)
        let report = try JSONTree(parsing: try readFile(out))
        #expect(report["stopped"]?.bool == true && (report["written"]?.int ?? 0) >= 3)
        await world.close()
    }

    @Test(
        arguments: [
            ["--rate", "1", "--speed", "1"], ["--ramp", "5s"], ["--duration", "0"], ["--duration", "long"],
            ["--producers", "0"], ["--producers", "65"], ["--wait", "-1"], ["--speed", "nan"],
        ])
    func aWrongPaceIsWrongUsage(words: [String]) throws {
        let run = try CommandRun(words: ["replay", "--config", "c", "--in", "f"] + words)
        #expect(run.code == 64 && run.errors.contains("carillon replay: --"), "\(run.errors)")
    }
}
