// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import EventLoop

/// Each row is what a client may send, and what the reader makes of it, whatever the pieces that it comes in.
struct HTTPRequestReaderTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var text: String
        /// Status of the refusal; 0: a request.
        var status: Int

        var testDescription: String { String(text.prefix(60)).debugDescription + " \(status)" }
    }

    private static func get(_ lines: String..., target: String = "/x?y=1") -> String {
        (["GET \(target) HTTP/1.1", "Host: a"] + lines).joined(separator: "\r\n") + "\r\n\r\n"
    }

    static let rows: [Row] = [
        Row(text: get(), status: 0),
        Row(text: "\r\n\r\n" + get(), status: 0),
        Row(text: get("Content-Length: 3") + "abc", status: 0),
        Row(text: get("Content-Length: 4097"), status: 413),
        Row(text: get("Content-Length: 99999999999999999999"), status: 400),
        Row(text: get("Content-Length: -1"), status: 400),
        Row(text: get("Content-Length: 1", "Content-Length: 1") + "a", status: 400),
        Row(text: get("Transfer-Encoding: chunked"), status: 501),
        Row(text: get("Host: b"), status: 400),
        Row(text: get("Authorization: a", "authorization: b"), status: 400),
        Row(text: get("X : 1"), status: 400),
        Row(text: get(" folded"), status: 400),
        Row(text: get("X: a\u{0}b"), status: 400),
        Row(text: get("X: a\nHost: evil"), status: 400),
        Row(text: get("X: a\rHost: evil"), status: 400),
        Row(text: "GET /x\r\n\r\n", status: 400),
        Row(text: "GET  /x HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
        Row(text: "GET /x HTTP/2.0\r\nHost: a\r\n\r\n", status: 505),
        Row(text: "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
        Row(text: "GET x HTTP/1.1\r\nHost: a\r\n\r\n", status: 400),
        Row(text: "GET /x HTTP/1.1\r\n\r\n", status: 400),
        Row(text: "GET /x HTTP/1.0\r\nHost: a b\r\n\r\n", status: 400),
        Row(text: get("X: " + String(repeating: "a", count: 9000)), status: 431),
        Row(text: String(repeating: "a", count: 9000), status: 431),
        Row(text: get() + String(repeating: "a", count: 60_000), status: 413),
    ]

    @Test(arguments: rows) func wholeOrInPiecesItIsTheSame(row: Row) {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for round in 0..<20 {
            var reader = HTTPRequestReader()
            var rest = Array(row.text.utf8)[...]
            var step = HTTPRequestReader.Step.more
            while !rest.isEmpty, step == .more {
                let count =
                    round == 0 ? rest.count : Int.random(in: 1...max(1, min(rest.count, 700)), using: &generator)
                rest.prefix(count).withUnsafeBytes { reader.append($0) }
                rest = rest.dropFirst(count)
                step = reader.next()
            }
            switch step {
            // What floods behind a whole request is refused at once or with the next one.
            case .request where row.status == 413 && round > 0: break
            case .request(let head):
                #expect(row.status == 0, "\(generator.seed)")
                #expect(head.path == "/x" && head.query == "y=1" && head.host == "a" && head.keepsAlive)
            case .refused(let status, _): #expect(status == row.status, "\(generator.seed)")
            case .more: Issue.record("nothing came of \(row.testDescription), seed \(generator.seed)")
            }
        }
    }

    @Test(arguments: [
        "GET /x HTTP/1.0\r\n\r\n", "GET /x HTTP/1.0\r\nHost:\r\n\r\n", "GET /x HTTP/1.1\r\nHost: \r\n\r\n",
    ])
    func aRequestMayNameNoHost(text: String) {
        var reader = HTTPRequestReader()
        Array(text.utf8).withUnsafeBytes { reader.append($0) }
        guard case .request(let head) = reader.next() else {
            Issue.record("no request came")
            return
        }
        #expect(head.host == nil)
    }

    @Test func aBodyInSmallPiecesCostsNoSecondReadingOfItsHead() {
        let head = Array(Self.get("Content-Length: 4000", "X: " + String(repeating: "a", count: 7000)).utf8)
        let byte: [UInt8] = [0x61]
        var reader = HTTPRequestReader()
        var step = HTTPRequestReader.Step.more
        let first = CountedWork.of {
            head.withUnsafeBytes { reader.append($0) }
            step = reader.next()
        }
        let rest = CountedWork.of {
            for _ in 0..<4000 where step == .more {
                byte.withUnsafeBytes { reader.append($0) }
                step = reader.next()
            }
        }
        guard case .request(let request) = step else {
            Issue.record("\(step) is no request")
            return
        }
        #expect(request.host == "a" && reader.heldBytes == 0)
        #expect(rest.allocations <= first.allocations)
    }

    @Test func requestsComeOneByOne() {
        var reader = HTTPRequestReader()
        let text = Self.get("Content-Length: 2") + "ab" + Self.get("Connection: Keep-Alive, Close")
        Array(text.utf8).withUnsafeBytes { reader.append($0) }
        guard case .request(let first) = reader.next(), case .request(let second) = reader.next() else {
            Issue.record("two requests came")
            return
        }
        #expect(first.keepsAlive && !second.keepsAlive)
        #expect(reader.next() == .more)
    }

    @Test(
        arguments: [
            ("a", "a"), ("A.b:80", "a.b"), ("[::1]", "::1"), ("[::1]:9464", "::1"), ("a:", "a"), ("", nil),
            (":80", nil),
            ("a:b", nil), ("a/b", nil), ("a@b", nil), ("[::1]x", nil), ("::1", nil),
        ] as [(String, String?)])
    func aHostIsReadWithoutItsPort(field: String, name: String?) {
        #expect(HTTPRequestHead.hostName(Array(field.utf8)[...]) == name)
    }

    @Test(arguments: [
        ("::ffff:10.0.0.1", "10.0.0.1"), ("::ffff:1", "::ffff:1"), ("::1", "::1"), ("10.0.0.1", "10.0.0.1"),
    ])
    func anAddressIsKnownByItsOwnForm(host: String, plain: String) {
        #expect(HTTPConnection.plain(host) == plain)
    }
}
