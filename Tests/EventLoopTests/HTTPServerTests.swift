import EventLoop
import Glibc
import Support
import Testing

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
                port: port, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
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
                port: port, "\(method) /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
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
            let one = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
            let two = "GET /later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            let text = String(decoding: try Ports.exchange(port: port, send: Array((one + two).utf8)), as: UTF8.self)
            #expect(text.contains("page -"))
            #expect(text.hasSuffix("late"))
        }
    }

    @Test func survivesAClientThatLeavesBeforeTheAnswer() async throws {
        try await serving { port async throws in
            let fd = try Ports.connect(port: port)
            let text = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
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
        "GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
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

private final class Holder {
    var responder: HTTPResponder?
    var timer: LoopTimer?
}
