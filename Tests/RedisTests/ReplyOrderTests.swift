// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis
import Support
import Testing

/// A server that answers each command, and once says one thing more.
private final class TalkativeRedis: LinkDelegate {
    /// Before the answer to which command it says more; nil: before none.
    private let extraBefore: Int?
    private var listener: Listener?
    private var links: [Link] = []
    private var rest: [UInt8] = []
    private var count = 0

    init(loop: Loop, extraBefore: Int?) throws(LoopFault) {
        self.extraBefore = extraBefore
        listener = try Listener(loop: loop) { [unowned self] link in
            link.delegate = self
            links.append(link)
        }
    }

    var port: UInt16 { listener?.port ?? 0 }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        rest += Array(bytes)
        var answers = ""
        while let words = takeCommand() {
            switch (words.first, words.count) {
            case ("INFO", _), ("CLUSTER", _): answers += "-ERR unknown command\r\n"
            case ("EVAL", 4): answers += "$\(words[3].utf8.count)\r\n\(words[3])\r\n"
            case ("EVAL", _): answers += ":1\r\n"
            default:
                count += 1
                if count == extraBefore { answers += "+EXTRA\r\n" }
                answers += "+PONG\r\n"
            }
        }
        link.write(Array(answers.utf8))
    }

    private func takeCommand() -> [String]? {
        let lines = String(decoding: rest, as: UTF8.self).components(of: "\r\n")
        guard let head = lines.first, head.hasPrefix("*"), let words = Int(head.dropFirst()),
            lines.count > 2 * words + 1
        else { return nil }
        let taken = lines.prefix(2 * words + 1)
        rest.removeFirst(taken.reduce(0) { $0 + $1.utf8.count + 2 })
        return (0..<words).map { lines[2 * $0 + 2] }
    }

    func link(_ link: Link, didClose reason: LinkFault) { links.removeAll { $0 === link } }
}

extension String {
    fileprivate func components(of separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ReplyOrderTests {
    /// Sends commands while others are open, so that the pipeline is never empty.
    private func play(extraBefore: Int?) async throws -> (faults: Set<String>, connections: UInt32) {
        let stage = try TestLoop("talkative")
        let port = try await stage.run { stage in
            let server = try TalkativeRedis(loop: stage.loop, extraBefore: extraBefore)
            stage.keep(server)
            return server.port
        }
        let world = try RedisWorld()
        try await world.connect("redis://127.0.0.1:\(port)")
        try await world.with { client, _ in
            for tag in 1...300 as ClosedRange<UInt64> { try client.command(tag) { $0.arg("PING") } }
        }
        var faults: Set<String> = []
        for tag in 1...300 as ClosedRange<UInt64> {
            if case .failed(_, let fault) = try await world.answer(tag) { faults.insert(fault.code.name) }
        }
        let connections = await world.with { client, _ in client.connectionCount } ?? 0
        await world.end()
        await stage.end()
        return (faults, connections)
    }

    @Test func anExtraReplyEndsTheLinkAlthoughOthersAreDue() async throws {
        let outcome = try await play(extraBefore: 20)
        #expect(outcome.faults.contains("protocol"))
    }

    @Test func aServerThatSaysWhatItIsAskedKeepsItsLink() async throws {
        let outcome = try await play(extraBefore: nil)
        #expect(outcome.faults.isEmpty && outcome.connections == 1)
    }

    /// Contract 8: the password's file is read again at each login.
    @Test func aChangedPasswordFileCountsAtTheNextLogin() async throws {
        let server = try RedisServer(arguments: ["--requirepass", "one"])
        let folder = try TemporaryFolder()
        let file = folder.file("password")
        try folder.write(Array("one\n".utf8), to: "password")
        let world = try RedisWorld()
        var endpoint = try RedisEndpoint(url: server.url)
        endpoint.passwordFile = file
        try await world.start(endpoint)
        try await world.ready()
        try folder.write(Array("two\n".utf8), to: "password")
        try await world.send(1, "CONFIG", "SET", "requirepass", "two")
        _ = try await world.reply(1)
        try await world.send(2, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
        for _ in 0..<2_000 where await world.with({ client, _ in client.connectionCount }) != 2 {
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(await world.with { client, _ in client.connectionCount } == 2, "it has logged in again")
        await world.end()
    }
}
