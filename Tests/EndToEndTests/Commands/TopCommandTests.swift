import EventLoop
import Foundation
import Glibc
import JSON
import Processes
import Support
import Testing
import Worker

/// `carillon top` beside workers.
struct TopCommandTests {
    @Test func itTellsWhatAWorkerDoes() async throws {
        try await Stage.with { stage in
            let port = try await stage.worker.operatorPort
            try await stage.play(state: [.bind("t1")])
            let words = ["top", "--worker", "\(port)", "--json", "--interval", "0.3"]
            let top = try await offPool {
                try ServerProcess(CommandRun.binary.path, words, readyLine: #""state":"ready""#)
            }
            try await stage.play(events: (0..<20).map { .message("t\($0)", to: ["t1"]) })
            try await until("the rates are told") {
                top.takeOutput().split(separator: "\n").contains { line in
                    guard let rates = (try? JSONTree(parsing: Array(line.utf8)))?["per_s"] else { return false }
                    return (rates["consumed"]?.double ?? 0) > 0
                }
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
            #expect(people.code == 0 && people.output.contains("127.0.0.1:\(port)   ready"), "\(people.output)")
            #expect(!people.output.contains("\u{1b}"))
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

    /// util-linux' `script` lends it a terminal.
    @Test func onATerminalItIsDrawnInPlaceUntilQ() async throws {
        let (server, port) = try await Self.serve()
        let folder = try TemporaryFolder()
        let command = "stty cols 40 rows 3; '\(CommandRun.binary.path)' top --worker \(port) --interval 600"
        // The key waits in the terminal until it is asked for.
        let process = try await offPool {
            try FinishedProcess.run(
                "sh",
                [
                    "-c", #"printf q | TERM=xterm NO_COLOR=1 script -qec "$1" /dev/null >"$2""#, "sh", command,
                    folder.file("out"),
                ])
        }
        let text = String(decoding: try readFile(folder.file("out")), as: UTF8.self)
        #expect(process.exitCode == 0, "\(text)")
        let parts = text.split(separator: "\u{1b}[?1049h", maxSplits: 1)
        let screen = try #require(parts.last?.split(separator: "\u{1b}[?1049l").first)
        #expect(parts.count == 2 && screen.contains("carillon top") && screen.contains("more lines"), "\(text)")
        #expect(screen.utf8.count { $0 == UInt8(ascii: "\n") } == 2 && text.contains("\u{1b}[?25h"))
        await server.end()
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
