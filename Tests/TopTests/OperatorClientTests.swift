// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes
import Support
import Telemetry
import Testing

@testable import Fleet
@testable import Top

@Suite struct OperatorClientTests {
    @Test(
        arguments: [
            ("127.0.0.1:9464", "127.0.0.1:9464"), ("http://w1:80/", "w1:80"), (":9464", "127.0.0.1:9464"),
            ("9464", "127.0.0.1:9464"), ("[::1]:9464", "[::1]:9464"), ("http://[::1]:1", "[::1]:1"),
            ("w1", nil), ("w1:", nil), ("w1:0", nil), ("w1:70000", nil), ("w1:80/metrics", nil), ("", nil),
            ("a\r\nX: y:80", nil), ("a b:80", nil), (String(repeating: "a", count: 400) + ":80", nil),
        ] as [(String, String?)])
    func anAddressIsReadOrRefused(text: String, address: String?) {
        #expect(OperatorClient(text)?.address == address)
    }

    /// Both pages of something that may be a worker.
    private static func serving(
        access: HTTPAccess = HTTPAccess(), statusz: HTTPResponse = HTTPResponse(text: #"{"ready":true,"shards":[]}"#),
        _ body: (String) async throws -> Void
    ) async throws {
        let test = try TestLoop("http")
        let port = try await test.run { test in
            let server = try HTTPServer(loop: test.loop, access: access)
            server.get("/metrics") { _ in HTTPResponse(text: "carillon_pending_events 3\n") }
            server.get("/statusz") { _ in statusz }
            test.keep(server)
            return server.port
        }
        try await body("127.0.0.1:\(port)")
        await test.end()
    }

    private static func why(_ look: WorkerLook) -> String {
        if case .away(let why) = look.answer { why } else { "" }
    }

    @Test func bothPagesAreOneLook() async throws {
        try await Self.serving { address async throws in
            let look = try #require(OperatorClient(address)).ask()
            #expect(look.metrics?.sum(FleetMetrics.pendingEvents) == 3 && look.status?.isReady == true)
            #expect(look.address == address)
        }
    }

    @Test func aTokenIsGivenAndMissed() async throws {
        let access = HTTPAccess(token: Secret(bytes: Array("s3cret".utf8)))
        try await Self.serving(access: access) { address async throws in
            #expect(try #require(OperatorClient(address, token: "s3cret")).ask().status?.isReady == true)
            #expect(Self.why(try #require(OperatorClient(address)).ask()).contains("--token-file"))
            #expect(Self.why(try #require(OperatorClient(address, token: "other")).ask()).contains("--token-file"))
        }
    }

    @Test func aServerThatIsNoWorkerIsDownWithAReason() async throws {
        try await Self.serving(statusz: HTTPResponse(text: "<html>")) { address async throws in
            #expect(Self.why(try #require(OperatorClient(address)).ask()).contains("not JSON"))
        }
        try await Self.serving(statusz: HTTPResponse(status: 500, text: "")) { address async throws in
            #expect(Self.why(try #require(OperatorClient(address)).ask()).contains("500"))
        }
        let port = try Ports.free()
        #expect(Self.why(try #require(OperatorClient("127.0.0.1:\(port)")).ask()) == "Connection refused")
        // It listens, and says nothing.
        let silent = try Ports.silentListener(backlog: 5)
        #expect(Self.why(try #require(OperatorClient("\(silent.port)", patienceMs: 100)).ask()) == "no answer in time")
    }
}
