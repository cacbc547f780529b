// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Foundation
import Glibc
import JSON
import Processes
import StageWords
import Support
import Testing
import Worker

/// `carillon top` beside workers.
struct TopCommandTests {
    @Test func itShowsTheWorkOfAWorker() async throws {
        try await Stage.with { stage in
            let port = try await stage.worker.operatorPort
            try await stage.play(state: [.bind("t1")])
            let words = ["top", "--worker", "\(port)", "--json", "--interval", "0.3"]
            let top = try await offPool {
                try ServerProcess(CommandRun.binary.path, words, readyLine: #""state":"ready""#)
            }
            // One look alone sees a round's records, and tells nothing of them if the worker was too busy to answer the look
            // before. Its line may come in two parts.
            var (told, round) = ("", 0)
            while !Self.hasRates(told) {
                try #require(round < 200, "no rates after \(round) messages")
                try await stage.play(events: [.message("t\(round)", to: ["t1"])])
                told += top.takeOutput()
                round += 1
            }
            #expect(top.stop())
            let run = try await offPool {
                try CommandRun("top", "--worker", "\(port)", "--once", "--json", "--interval", "0.2")
            }
            let view = try JSONTree(parsing: Array(run.output.utf8))
            #expect(run.code == 0 && view["workers"]?[0]?["state"]?.string == "ready", "\(run.output)\(run.errors)")
            #expect(view["assigned_partitions"]?.double == 8 && view["redis"]?["connected"]?.int == 2)
            #expect(view["per_s"]?["attempts"]?["accepted"]?.double != nil)
            #expect(view["apns"]?.array?.contains { ($0["connections"]?.double ?? 0) > 0 } == true)
            // Without a terminal there is no sequence of one.
            let people = try await offPool {
                try CommandRun("top", "--worker", "\(port)", "--once", "--interval", "0.2")
            }
            #expect(people.code == 0 && people.output.contains("127.0.0.1:\(port)   ok"), "\(people.output)")
            #expect(!people.output.contains("\u{1b}"))
        }
    }

    private static func hasRates(_ lines: String) -> Bool {
        lines.split(separator: "\n").contains { line in
            guard let rates = (try? JSONTree(parsing: Array(line.utf8)))?["per_s"] else { return false }
            return (rates["consumed"]?.double ?? 0) > 0
        }
    }

    /// A phone that looks connected holds up its partition until its acknowledgement is overdue.
    @Test func aPartitionThatIsHeldUpIsNamed() async throws {
        try await Stage.with { stage in
            let port = try await stage.worker.operatorPort
            try await stage.play(state: [.bind("t2")])
            try await stage.redis([Gateway.lease("gw-t2"), Gateway.presence("t2", "phone", gateway: "gw-t2")])
            let words = ["top", "--worker", "\(port)", "--json", "--interval", "0.3"]
            let top = try await offPool {
                try ServerProcess(CommandRun.binary.path, words, readyLine: #""state":"ready""#)
            }
            try await stage.writeEvents([.message("t2", to: ["t2"])])
            try await until("the partition is named") {
                top.takeOutput().split(separator: "\n").contains { line in
                    let slowest = (try? JSONTree(parsing: Array(line.utf8)))?["slowest_partitions"]?[0]
                    return slowest?["topic"]?.string == "im.events" && slowest?["unsettled"]?.int == 1
                        && slowest?["lag"]?.int == 1 && (slowest?["oldest_s"]?.double ?? 0) > 0
                }
            }
            #expect(top.stop())
        }
    }

    /// A worker's pages, until the end of the loop.
    private static func serve(port: UInt16 = 0) async throws -> (TestLoop, UInt16) {
        let test = try TestLoop("http")
        let bound = try await test.run { test in
            let server = try HTTPServer(loop: test.loop, port: port)
            server.get("/metrics") { _ in HTTPResponse(text: "process_start_time_seconds 1\n") }
            server.get("/statusz") { _ in HTTPResponse(text: #"{"ready":true,"shards":[]}"#) }
            test.keep(server)
            return server.port
        }
        return (test, bound)
    }

    @Test func aWorkerGoesAndComesBack() async throws {
        let (first, port) = try await Self.serve()
        let words = ["top", "--worker", "127.0.0.1:\(port)", "--interval", "0.2", "--json"]
        let top = try await offPool {
            try ServerProcess(CommandRun.binary.path, words, readyLine: #""state":"ready""#)
        }
        await first.end()
        try await until("it is away") { top.takeOutput().contains(#""state":"away""#) }
        let (second, _) = try await Self.serve(port: port)
        try await until("it is back") {
            let states = top.takeOutput().split(separator: "\n").compactMap { line -> String? in
                (try? JSONTree(parsing: Array(line.utf8)))?["workers"]?[0]?["state"]?.string
            }
            guard let away = states.lastIndex(of: "away") else { return false }
            return states[away...].contains("ready")
        }
        #expect(top.stop(), "a signal ends it in order")
        await second.end()
    }

    /// A run on a terminal, which util-linux' `script` lends; keys are what is written to `keys` in the folder.
    private static func onTerminal(
        _ words: String, in folder: TemporaryFolder, setting: String = "true", until readyLine: String
    ) async throws -> ServerProcess {
        let script = #"""
            mkfifo "$2/keys"; sleep 600 >"$2/keys" &
            TERM=xterm NO_COLOR=1 script -qefc "$1" /dev/null <"$2/keys"; kill $!
            """#
        let command = "\(setting); exec '\(CommandRun.binary.path)' top \(words)"
        return try await offPool {
            try ServerProcess("sh", ["-c", script, "sh", command, folder.path], readyLine: readyLine)
        }
    }

    private static let isGivenBack = "\u{1b}[?25h\u{1b}[?1049l"

    @Test func onATerminalItIsDrawnInPlaceUntilQ() async throws {
        let (server, port) = try await Self.serve()
        let folder = try TemporaryFolder()
        let terminal = try await Self.onTerminal(
            "--worker \(port) --interval 600", in: folder, setting: "stty cols 40 rows 3", until: "more lines")
        let file = try #require(fopen(folder.file("keys"), "w"))
        fputs("xq", file)
        fclose(file)
        try await until("all have ended") { !terminal.isRunning }
        let text = terminal.takeOutput()
        #expect(text.contains("\u{1b}[?1049h") && text.contains("carillon top") && text.hasSuffix(Self.isGivenBack))
        let picture = try #require(text.split(separator: "\u{1b}[H").last)
        #expect(picture.utf8.count { $0 == UInt8(ascii: "\n") } == 2, "\(text)")
        await server.end()
    }

    @Test func aSilentWorkerIsShownAndASignalGivesTheTerminalBack() async throws {
        let silent = try Ports.silentListener(backlog: 5)
        defer { close(silent.fd) }
        let folder = try TemporaryFolder()
        let terminal = try await Self.onTerminal(
            "--worker \(silent.port) --interval 0.2", in: folder, until: "no answer in time")
        let all = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }
        let top = try #require(
            all.first { pid in
                let line = (try? String(contentsOfFile: "/proc/\(pid)/cmdline", encoding: .utf8)) ?? ""
                return line.hasPrefix(CommandRun.binary.path) && line.contains("\0\(silent.port)\0")
            })
        kill(top, SIGTERM)
        try await until("all have ended") { !terminal.isRunning }
        #expect(terminal.takeOutput().hasSuffix(Self.isGivenBack))
    }

    @Test(arguments: [
        ["--interval", "0"], ["--interval", "x"], ["--worker", "nowhere"], ["--token-file", "/nonexistent"],
    ])
    func aWrongValueIsWrongUsageWithItsCure(_ words: [String]) throws {
        let run = try CommandRun(words: ["top"] + words)
        #expect(run.code == 64 && run.errors.contains("carillon top: \(words[0])"))
    }

    @Test func withoutAWorkerItSaysSoAndFails() throws {
        let run = try CommandRun("top", "--worker", "\(try Ports.free())", "--once", "--interval", "0.2")
        #expect(run.code == 1 && run.output.contains("away   Connection refused"))
    }
}
