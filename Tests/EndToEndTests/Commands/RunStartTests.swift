// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import Glibc
import JSON
import Processes
import StageWords
import Support
import Testing

/// How `run` begins: what it asks of the system, what it tells systemd, and what it refuses.
@Suite(.timeLimit(.minutes(5))) struct RunStartTests {
    /// A configuration whose servers are all away, with a key that can be read.
    private static func configuration(_ folder: TemporaryFolder, port: UInt16, _ more: String = "") throws -> String {
        let key = try PrivateKey.generate().pem()
        let keyFile = try folder.write(key, to: "key.p8")
        chmod(keyFile, 0o600)
        let text = """
            kafka: {brokers: "127.0.0.1:9"}
            redis: {url: "redis://127.0.0.1:9"}
            apps:
              - id: im
                topic: com.example.im
                endpoint: https://127.0.0.1:9
                credentials: {key_file: \(keyFile), key_id: ABC123DEFG, team_id: DEF123GHIJ}
            http: {listen: "127.0.0.1:\(port)"}
            shards: 2
            drain_s: 5
            \(more)
            """
        return try folder.write(Array(text.utf8), to: "c.yaml")
    }

    /// With shards already at work it ended by a trap as often as not.
    @Test func aTakenPortIsTriedAgain() async throws {
        let folder = try TemporaryFolder()
        let taken = try Ports.silentListener(backlog: 1)
        defer { close(taken.fd) }
        let path = try Self.configuration(folder, port: taken.port)
        for _ in 0..<4 {
            let run = try await offPool { try CommandRun("run", "--config", path) }
            #expect(run.code == 75 && run.errors.contains("in use"), "\(run.errors)")
        }
    }

    /// Only where it is asked for, and then of every stage.
    @Test(arguments: ["", "--stage-times"]) func aWorkerExportsTheTimeOfItsStages(option: String) async throws {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        let stage = try await Stage(settings)
        let worker = try await WorkerRun(stage, option: option)
        try await stage.writeState([.bind("st-1")])
        try await until("the bind is settled") { try await worker.metrics().sum("carillon_events_settled_total") >= 1 }
        try await stage.writeEvents((0..<20).map { .message("st-\($0)", to: ["st-1"]) })
        try await until("the messages are settled") {
            try await worker.metrics().sum("carillon_events_settled_total") >= 21
        }
        let metrics = try await worker.metrics()
        for name in ["read", "lookup", "decide", "claim", "render", "send", "record", "redis", "other"] {
            let seconds = metrics.sum("carillon_stage_seconds_total", "stage=\"\(name)\"")
            #expect((seconds > 0) == (option != ""), "\(name) \(seconds)")
        }
        // Each message passes each step of one lane. A message that is read again counts again, up to its push.
        for step in ["kafka", "start", "lookup", "claim", "push"] {
            let count = metrics.sum("carillon_step_seconds_count", "step=\"\(step)\"", "lane=\"direct\"")
            let isExact = option == "" || step == "push"
            #expect(isExact ? count == (option != "" ? 20 : 0) : count >= 20, "\(step) \(count)")
        }
        #expect((metrics.sum("carillon_turns_total") > 0) == (option != ""))
        let results = try stage.world.records(of: "push.results").compactMap(\.value)
        let lanes = try results.map { try JSONTree(parsing: $0)["lane"]?.string }
        #expect(lanes.count == 20 && lanes.allSatisfy { $0 == "direct" })
        await worker.kill()
        await stage.close()
    }

    @Test func systemdHearsOfStartLifeAndEnd() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.configuration(folder, port: 0)
        let fd = try Self.notifySocket(folder.file("notify"))
        defer { close(fd) }
        let words = [
            "-u", "WATCHDOG_PID", "NOTIFY_SOCKET=" + folder.file("notify"), "WATCHDOG_USEC=200000",
            CommandRun.binary.path, "run", "--config", path,
        ]
        let process = try await offPool { try ServerProcess("env", words, readyLine: "\"started\"") }
        // One thread reads all words: the socket keeps few, and a word that finds it full is lost.
        let heard = try await offPool {
            var heard = [Self.next(fd), Self.next(fd), Self.next(fd), Self.next(fd)]
            process.send(SIGTERM)
            repeat { heard.append(Self.next(fd)) } while heard.last == "WATCHDOG=1"
            return heard
        }
        #expect(heard[0].hasPrefix("READY=1\n"), "\(heard)")
        #expect(heard.dropFirst().dropLast().allSatisfy { $0 == "WATCHDOG=1" }, "\(heard)")
        #expect(heard.last?.hasPrefix("STOPPING=1\n") == true, "\(heard)")
        // A second signal would end it at once.
        try await until("the process has ended") { !process.isRunning }
        #expect(try await offPool { process.stop(graceMs: 20_000) })
    }

    @Test func theProcessIsClosedAndHasDescriptors() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.configuration(folder, port: 0)
        let process = try await offPool {
            try ServerProcess(
                "sh", ["-c", "ulimit -Sn 200; exec \(CommandRun.binary.path) run --config \(path)"],
                readyLine: "\"started\"")
        }
        let limits = try String(contentsOfFile: "/proc/\(process.pid)/limits", encoding: .utf8)
        func soft(_ name: String) -> String? {
            let line = limits.split(separator: "\n").first { $0.hasPrefix(name) }
            return line?.dropFirst(name.count).split(separator: " ").first.map(String.init)
        }
        #expect(soft("Max core file size") == "0")
        #expect(try #require(soft("Max open files").flatMap { Int($0) }) > 200)
        #expect(process.takeOutput().contains("\"dumps_forbidden\":true"))
        #expect(try await offPool { process.stop(graceMs: 20_000) })
    }

    @Test func aHangUpReloadsWhatCanChangeAndNeverEndsIt() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.configuration(folder, port: 0)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let process = try await offPool {
            try ServerProcess(CommandRun.binary.path, ["run", "--config", path], readyLine: "\"started\"")
        }
        var output = process.takeOutput()
        let url = try #require(output.firstMatch(of: /"http":"http:..127.0.0.1:(\d+)/))
        let port = try #require(UInt16(url.1))
        func told(_ words: String) async throws {
            try await until("it is told: \(words)") {
                output = process.takeOutput()
                return output.contains(words)
            }
        }
        func metric(_ name: String, _ label: String = "") async throws -> Double {
            let page = try await offPool { try HTTPClient.get(port: port, "/metrics") }
            return MetricsText(page.text).sum(name, label)
        }
        #expect(try await metric("carillon_config_info") == 1)
        try folder.write(Array("kafka: {}\n".utf8), to: "c.yaml")
        process.send(SIGHUP)
        try await told("reload refused")
        #expect(output.contains("c.yaml:1: kafka.brokers is missing"))
        let changed = text.replacing("shards: 2", with: "shards: 3").replacing("drain_s: 5", with: "drain_s: 6")
        try folder.write(Array((changed + "\nlog: {level: warning}\n").utf8), to: "c.yaml")
        process.send(SIGHUP)
        try await told(#""changed":"drain_s, log.level""#)
        try await told(#""keys":"shards""#)
        #expect(try await metric("carillon_config_reloads_total", #"result="refused""#) == 1)
        #expect(try await metric("carillon_config_reloads_total", #"result="applied""#) == 1)
        #expect(try await metric("carillon_config_pending_keys") == 1)
        #expect(try await metric("carillon_config_info") == 1, "one hash is in effect")
        // What is below the new level is not told any more.
        process.send(SIGHUP)
        try await until("it is reloaded again") {
            try await metric("carillon_config_reloads_total", #"result="applied""#) == 2
        }
        try folder.write(Array("kafka: {}\n".utf8), to: "c.yaml")
        process.send(SIGHUP)
        try await until("the last one is told") {
            output = process.takeOutput()
            return output.split(separator: "reload refused").count == 3
        }
        #expect(output.split(separator: "configuration reloaded").count <= 2, "the first of two")
        #expect(try await offPool { process.stop(graceMs: 20_000) })
    }

    @Test func aWeakLinkWithoutItsWaiverIsRefusedByRunAndCheck() async throws {
        let folder = try TemporaryFolder()
        let plain = try Self.configuration(folder, port: 0)
        var text = try String(contentsOfFile: plain, encoding: .utf8)
        text = text.replacingOccurrences(of: "redis://127.0.0.1:9", with: "redis://192.0.2.1:9")
        let path = try folder.write(Array(text.utf8), to: "weak.yaml")
        for words in [["run"], ["check", "--offline"]] {
            let run = try await offPool { try CommandRun(words: words + ["--config", path]) }
            #expect(run.code == 78)
            #expect((run.output + run.errors).contains("weak.yaml:2"))
            #expect((run.output + run.errors).contains("waivers: [plain_redis]"))
        }
        let waived = try folder.write(Array((text + "\nwaivers: [plain_redis]\n").utf8), to: "waived.yaml")
        let check = try await offPool {
            try CommandRun("check", "--offline", "--strict", "--json", "--config", waived)
        }
        #expect(check.code == 0)
        let findings = try check.lines.map { try JSONTree(parsing: Array($0.utf8)) }
        #expect(findings.contains { $0["grade"]?.string == "waived" && $0["place"]?.string == "plain_redis" })
    }

    @Test func aKeyThatOthersCanReadIsAWarningAndStrictlyAProblem() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.configuration(folder, port: 0)
        chmod(folder.file("key.p8"), 0o644)
        for (words, code) in [([], 0), (["--strict"], 1)] as [([String], Int32)] {
            let run = try await offPool { try CommandRun(words: ["check", "--offline", "--config", path] + words) }
            #expect(run.code == code)
            #expect(run.output.contains("key.p8 can be opened by every user"))
        }
    }

    private static func notifySocket(_ path: String) throws -> Int32 {
        let fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(code == 0)
        return fd
    }

    /// The next word to systemd; says so if none comes within 20 s. Blocks.
    private static func next(_ fd: Int32) -> String {
        var block = [UInt8](repeating: 0, count: 256)
        let count = recv(fd, &block, block.count, 0)
        return count > 0 ? String(decoding: block[..<count], as: UTF8.self) : "no word within 20 s"
    }
}
