// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Support
import Telemetry
import Testing

@testable import EventLoop

@Suite(.timeLimit(.minutes(10)))
struct HTTPServerTests {
    /// A server with a page, and a page that is answered in a later turn.
    private func serving(_ body: (UInt16) async throws -> Void) async throws {
        let test = try TestLoop("http")
        let port = try await test.run { test in
            let server = try HTTPServer(loop: test.loop)
            server.get("/metrics") { request in
                HTTPResponse(contentType: "text/x", body: Array("page \(request.query ?? "-")".utf8))
            }
            let holder = Holder()
            server.getLater("/later") { _, responder in
                holder.responder = responder
                holder.timer = LoopTimer(loop: test.loop) { [unowned holder] in
                    holder.responder?.respond(HTTPResponse(text: "late"))
                    holder.responder?.respond(HTTPResponse(text: "twice"))
                    holder.responder = nil
                }
                holder.timer?.arm(afterNanos: 20_000_000)
            }
            server.getLater("/never") { _, _ in }
            test.keep(server)
            test.keep(holder)
            return server.port
        }
        try await body(port)
        await test.end()
    }

    @Test func answersARoute() async throws {
        try await serving { port async throws in
            let answer = try HTTPClient.get(port: port, "/metrics?a=1&b=%20")
            #expect(answer.status == 200)
            #expect(answer.text == "page a=1&b=%20")
            #expect(answer.headers["content-type"] == "text/x")
            #expect(answer.headers["cache-control"] == "no-store")
        }
    }

    @Test func answersHeadWithoutContent() async throws {
        try await serving { port async throws in
            let answer = try HTTPClient.request(
                port: port, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            #expect(answer.status == 200)
            #expect(answer.headers["content-length"] == "6")
            #expect(answer.body.isEmpty)
        }
    }

    @Test func answers404ForOtherPaths() async throws {
        try await serving { port async throws in
            for path in ["/", "/metrics/", "/metric", "/../metrics", "//metrics"] {
                #expect(try HTTPClient.get(port: port, path).status == 404, "\(path)")
            }
        }
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
    func answers405ForOtherMethods(method: String) async throws {
        try await serving { port async throws in
            let answer = try HTTPClient.request(
                port: port,
                "\(method) /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            #expect(answer.status == 405)
            #expect(answer.headers["allow"] == "GET, HEAD")
        }
    }

    @Test func answersInALaterTurnOnce() async throws {
        try await serving { port async throws in
            #expect(try HTTPClient.get(port: port, "/later").text == "late")
        }
    }

    @Test func answers500WhereTheHandlerForgets() async throws {
        try await serving { port async throws in
            #expect(try HTTPClient.get(port: port, "/never").status == 500)
        }
    }

    @Test func servesTwoRequestsOnOneConnection() async throws {
        try await serving { port async throws in
            let one = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let two = "GET /later HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            let text = String(decoding: try Ports.exchange(port: port, send: Array((one + two).utf8)), as: UTF8.self)
            #expect(text.contains("page -"))
            #expect(text.hasSuffix("late"))
        }
    }

    @Test func survivesAClientThatLeavesBeforeTheAnswer() async throws {
        try await serving { port async throws in
            let fd = try Ports.connect(port: port)
            let text = "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n"
            #expect(send(fd, text, text.utf8.count, 0) == text.utf8.count)
            close(fd)
            #expect(try HTTPClient.get(port: port, "/later").text == "late")
        }
    }

    @Test(arguments: [
        "GET /metrics HTTP/1.1\r\nX: " + String(repeating: "a", count: 20_000) + "\r\n\r\n",
        "GET /" + String(repeating: "a", count: 20_000) + " HTTP/1.1\r\n\r\n",
        "GARBAGE\r\n\r\n",
        "BREW /metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nContent-Length: -5\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET http://[ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "\u{0}\u{1}\u{2}\r\n\r\n",
    ])
    func refusesAMalformedOrOversizedRequestAndGoesOnServing(text: String) async throws {
        try await serving { port async throws in
            let bytes = try Ports.exchange(port: port, send: Array(text.utf8))
            let answer = String(decoding: bytes, as: UTF8.self)
            // An error status or a plain close; never the page.
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 5"), "\(answer)")
            #expect(try HTTPClient.get(port: port, "/metrics").status == 200)
        }
    }
}

/// Bounds, names, token, and what browsers are told.
@Suite(.timeLimit(.minutes(10)))
struct HTTPServerGuardTests {
    private let asked = Facts<String>()

    /// A server with `/page`, `/figures` that needs no host name, and the probe `/open`.
    private func serving(
        access: HTTPAccess = HTTPAccess(), limits: HTTPServer.Limits = HTTPServer.Limits(),
        _ body: (UInt16, _ count: () async -> Int) async throws -> Void
    ) async throws {
        let test = try TestLoop("http")
        let server = Holder()
        let port = try await test.run { test in
            let made = try HTTPServer(loop: test.loop, access: access, limits: limits)
            made.get("/page") { _ in HTTPResponse(text: "page") }
            made.get("/open", .probe) { _ in HTTPResponse(text: "open") }
            made.get("/figures", .figures) { _ in HTTPResponse(text: "figures") }
            made.getLater("/own", fromOwnPagesOnly: true) { _, responder in responder.respond(HTTPResponse(text: "own"))
            }
            made.get("/large") { [asked] _ in
                asked.record("/large")
                return HTTPResponse(body: [UInt8](repeating: 0x61, count: 32 << 20))
            }
            server.server = made
            test.keep(server)
            return made.port
        }
        try await body(port) { await test.run { _ in server.server?.connectionCount ?? 0 } }
        await test.run { _ in server.server = nil }
        await test.end()
    }

    @Test func slowClientsHoldNoMoreThanTheirConnections() async throws {
        try await serving { port, count in
            var slow: [Int32] = []
            defer { for fd in slow { close(fd) } }
            for _ in 0..<300 {
                let fd = try Ports.connect(port: port)
                slow.append(fd)
                #expect(send(fd, "GET /pa", 7, Int32(MSG_NOSIGNAL)) == 7)
            }
            // Who asks is served, in place of who has waited longest.
            #expect(try HTTPClient.get(port: port, "/page").text == "page")
            #expect(await count() <= 64 + 192)
        }
    }

    @Test func theSourceWithMostConnectionsGivesWay() async throws {
        var limits = HTTPServer.Limits()
        limits.connections = 8
        limits.newcomers = 0
        try await serving(limits: limits) { port, count in
            let quiet = try Self.connect(port, from: "127.0.0.2")
            defer { close(quiet) }
            var flood: [Int32] = []
            defer { for fd in flood { close(fd) } }
            for _ in 0..<40 { flood.append(try Self.connect(port, from: "127.0.0.1")) }
            while await count() < 8 { await Task.yield() }
            let text = "GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            #expect(send(quiet, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
            var bytes = [UInt8](repeating: 0, count: 4096)
            #expect(recv(quiet, &bytes, bytes.count, 0) > 0)
        }
    }

    private static func connect(_ port: UInt16, from host: String) throws -> Int32 {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let source = try #require(SocketAddress(numericHost: host, port: 0))
        let target = try #require(SocketAddress(numericHost: "127.0.0.1", port: port))
        #expect(source.withPointer { bind(fd, $0, $1) } == 0)
        #expect(target.withPointer { Glibc.connect(fd, $0, $1) } == 0)
        return fd
    }

    @Test(arguments: [
        ("", 200), ("Sec-Fetch-Site: same-origin\r\n", 200), ("Sec-Fetch-Site: none\r\n", 200),
        ("Sec-Fetch-Site: cross-site\r\n", 403), ("Sec-Fetch-Site: same-site\r\n", 403),
        ("Origin: http://localhost:9464\r\n", 200), ("Origin: https://evil.example\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Referer: http://LOCALHOST:9464/trace?app=im\r\n", 200), ("Referer: http://localhost:80/\r\n", 403),
        ("Referer: http://localhost:9464.evil.example/\r\n", 403),
    ])
    func anotherSitesPageMayNotAsk(headers: String, status: Int) async throws {
        try await serving { port, _ in
            let answer = try HTTPClient.request(
                port: port, "GET /own HTTP/1.1\r\nHost: localhost:9464\r\n\(headers)Connection: close\r\n\r\n")
            #expect(answer.status == status)
        }
    }

    @Test func aRequestByteByByteHasOneTimeForAllOfIt() async throws {
        var limits = HTTPServer.Limits()
        limits.requestNanos = 300_000_000
        try await serving(limits: limits) { port, _ in
            let fd = try Ports.connect(port: port)
            defer { close(fd) }
            // A byte each 20 ms is never idle; the end comes all the same. Sending fails once the server has closed.
            var sent = 0
            while sent < 2000, send(fd, "a", 1, Int32(MSG_NOSIGNAL)) == 1 {
                sent += 1
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(sent > 1 && sent < 2000)
        }
    }

    @Test func anAnswerThatNobodyReadsHasItsTimeToo() async throws {
        var limits = HTTPServer.Limits()
        limits.requestNanos = 300_000_000
        try await serving(limits: limits) { port, count in
            let fd = try Ports.connect(port: port)
            defer { close(fd) }
            let text = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
            #expect(send(fd, text, text.utf8.count, 0) == text.utf8.count)
            _ = try await asked.next()
            while await count() > 0 { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test func theLastDescriptorsAreNotForClients() async throws {
        var limits = HTTPServer.Limits()
        limits.keptDescriptors = .max / 2
        limits.spareDescriptors = 0
        try await serving(limits: limits) { port, count in
            let answer = try Ports.exchange(
                port: port, send: Array("GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
            #expect(answer.isEmpty)
            #expect(await count() == 0)
        }
    }

    @Test(arguments: [
        ("localhost", 200), ("LOCALHOST:9464", 200), ("127.0.0.1", 200), ("127.0.0.1:80", 200), ("mine.internal", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example:9464", 421), ("10.0.0.1", 421),
        ("[::1]", 421), ("", 421), ("a b", 400), ("localhost:x", 400), ("[::1", 400),
    ])
    func onlyOurOwnNamesAreAnswered(host: String, status: Int) async throws {
        try await serving(access: HTTPAccess(hosts: ["Mine.Internal"])) { port, _ in
            let answer = try HTTPClient.request(
                port: port, "GET /page HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
            #expect(answer.status == status)
            // A whole URL overrules the field.
            let whole = try HTTPClient.request(
                port: port, "GET http://evil.example/page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            #expect(whole.status == 421)
        }
    }

    @Test(arguments: [
        "GET /PATH HTTP/1.0\r\n", "GET /PATH HTTP/1.0\r\nHost: evil.example\r\n",
        "HEAD /PATH HTTP/1.1\r\nHost: 10.0.0.1:9464\r\n", "GET /PATH HTTP/1.1\r\nHost:\r\n",
        "GET http://any.example/PATH HTTP/1.1\r\nHost: localhost\r\n",
    ])
    func probesAndFiguresAnswerAnyHostAndPagesDoNot(request: String) async throws {
        try await serving { port, _ in
            for (path, status) in [("open", 200), ("figures", 200), ("page", 421)] {
                let text = request.replacingOccurrences(of: "PATH", with: path)
                let answer = try HTTPClient.request(port: port, text + "Connection: close\r\n\r\n")
                #expect(answer.status == status, "\(path)")
            }
        }
    }

    /// HAProxy's `option httpchk /livez`.
    @Test func aProbeMayAskByOptions() async throws {
        try await serving { port, _ in
            let probe = try HTTPClient.request(port: port, "OPTIONS /open HTTP/1.0\r\n\r\n")
            #expect(probe.status == 200)
            let page = try HTTPClient.request(port: port, "OPTIONS /page HTTP/1.0\r\nHost: localhost\r\n\r\n")
            #expect(page.status == 405)
        }
    }

    @Test func aProbeIsAnsweredBeforeACrowdOfPages() async throws {
        let test = try TestLoop("http")
        let served = Holder()
        let gate = DispatchSemaphore(value: 0)
        let port = try await test.run { test in
            let made = try HTTPServer(loop: test.loop)
            made.get("/page") { _ in
                served.count += 1
                return HTTPResponse(text: "page")
            }
            made.get("/open", .probe) { _ in HTTPResponse(text: "\(served.count)") }
            served.server = made
            test.keep(served)
            return made.port
        }
        // The loop waits until all have asked, the probe last.
        test.loop.post { gate.wait() }
        var crowd: [Int32] = []
        defer { for fd in crowd { close(fd) } }
        for _ in 0..<50 {
            crowd.append(try Ports.connect(port: port))
            let text = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"
            #expect(send(crowd[crowd.count - 1], text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
        }
        let probe = try Ports.connect(port: port)
        defer { close(probe) }
        let text = "GET /open HTTP/1.0\r\n\r\n"
        #expect(send(probe, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
        gate.signal()
        let answer = try Self.readAll(probe)
        let before = Int(answer.split(separator: "\r\n").last ?? "") ?? 50
        #expect(before < 10)
        await test.run { _ in served.server = nil }
        await test.end()
    }

    private static func readAll(_ fd: Int32) throws -> String {
        var text: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(fd, &bytes, bytes.count, 0)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += bytes.prefix(count)
        }
    }

    @Test func whoDoesNotReadGivesWayBeforeAProbeThatIsAboutToAsk() async throws {
        var limits = HTTPServer.Limits()
        limits.connections = 4
        limits.newcomers = 4
        try await serving(limits: limits) { port, _ in
            var crowd: [Int32] = []
            defer { for fd in crowd { close(fd) } }
            func add() throws {
                crowd.append(try Ports.connect(port: port))
                let text = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
                #expect(send(crowd[crowd.count - 1], text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
            }
            for _ in 0..<7 {
                try add()
                var byte: UInt8 = 0
                #expect(recv(crowd[crowd.count - 1], &byte, 1, 0) == 1)
            }
            let probe = try Ports.connect(port: port)
            defer { close(probe) }
            // The server accepts in the order of the connects. Nobody waits for an answer here: a client that has asked nothing for a
            // quarter of a second gives way first.
            for _ in 0..<3 { try add() }
            let text = "GET /open HTTP/1.0\r\n\r\n"
            #expect(send(probe, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
            #expect(try Self.readAll(probe).hasSuffix("open"))
        }
    }

    @Test func spareDescriptorsServeWhoComesWhenOnlyKeptOnesAreLeft() async throws {
        var limits = HTTPServer.Limits()
        limits.keptDescriptors = .max / 2
        limits.spareDescriptors = 2
        try await serving(limits: limits) { port, count in
            var silent: [Int32] = []
            defer { for fd in silent { close(fd) } }
            for round in 0..<5 {
                // Clients that never ask hold the spare ones; who asks takes their place.
                silent.append(try Ports.connect(port: port))
                let answer = try HTTPClient.request(port: port, "GET /open HTTP/1.0\r\n\r\n")
                #expect(answer.text == "open", "round \(round)")
            }
            // The last answer's connection ends a moment after the client has read it.
            while await count() > 2 { await Task.yield() }
        }
    }

    @Test(
        arguments: [
            (nil, 401), ("Bearer 0123456789abcdef", 200), ("bearer  0123456789abcdef", 200),
            ("Bearer 0123456789abcdeF", 401),
            ("Bearer 0123456789abcdef0", 401), ("Bearer ", 401), ("Basic 0123456789abcdef", 401),
        ] as [(String?, Int)])
    func theTokenOpensAllButTheOpenPaths(field: String?, status: Int) async throws {
        try await serving(access: HTTPAccess(token: Secret("0123456789abcdef"))) { port, _ in
            func ask(_ path: String) throws -> HTTPClient.Answer {
                let line = field.map { "Authorization: \($0)\r\n" } ?? ""
                return try HTTPClient.request(
                    port: port, "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(line)Connection: close\r\n\r\n")
            }
            let page = try ask("/page")
            #expect(page.status == status)
            #expect(page.headers["www-authenticate"] == (status == 401 ? "Bearer" : nil))
            let none = try ask("/none").status
            #expect(none == (status == 401 ? 401 : 404))
            let open = try ask("/open").status
            #expect(open == 200)
            let figures = try ask("/figures").status
            #expect(figures == status)
        }
    }

    @Test func headersForbidBrowsersToRunOrFrameAnything() async throws {
        try await serving { port, _ in
            for path in ["/page", "/none"] {
                let headers = try HTTPClient.get(port: port, path).headers
                let policy = headers["content-security-policy"] ?? ""
                #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
                #expect(headers["x-frame-options"] == "DENY")
                #expect(headers["x-content-type-options"] == "nosniff")
            }
        }
    }

    @Test func aPageOfOurOwnMayUseTheServersFilesAndNothingElse() {
        func policy(_ usesOwnFiles: Bool) -> String {
            let bytes = HTTPResponse(body: [], usesOwnFiles: usesOwnFiles).bytes(isHead: false, closes: false)
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
            return String(lines.first { $0.hasPrefix("Content-Security-Policy: ") } ?? "")
        }
        let own = policy(true)
        for source in ["script-src 'self'", "style-src 'self'", "connect-src 'self'", "form-action 'self'"] {
            #expect(own.contains(source) && !policy(false).contains(source))
        }
        for policy in [own, policy(false)] {
            #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe") && !policy.contains("http") && policy.count { $0 == ":" } == 1)
            #expect(policy.components(separatedBy: "form-action").count == 2)
        }
    }
}

/// Touched on the loop only.
private final class Holder: @unchecked Sendable {
    var server: HTTPServer?
    var count = 0
    var responder: HTTPResponder?
    var timer: LoopTimer?
}
