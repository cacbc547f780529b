// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Redis
import Support
import Testing

/// A server that greets properly and then answers all further commands with given bytes, closing where told.
private final class FakeRedis: LinkDelegate {
    private let greeting: [UInt8]
    private let answer: [UInt8]
    private let closes: Bool
    private var listener: Listener?
    private var links: [Link] = []
    private var greeted: Set<ObjectIdentifier> = []

    /// INFO and CLUSTER INFO, of which it knows nothing, and the script.
    static let greeting = "-ERR unknown command\r\n-ERR unknown command\r\n:1\r\n"

    init(
        loop: Loop, greeting: String = FakeRedis.greeting, answer: [UInt8] = [], closes: Bool = false
    ) throws(LoopFault) {
        self.greeting = Array(greeting.utf8)
        self.answer = answer
        self.closes = closes
        listener = try Listener(loop: loop) { [unowned self] link in
            link.delegate = self
            links.append(link)
        }
    }

    var port: UInt16 { listener?.port ?? 0 }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        guard greeted.contains(ObjectIdentifier(link)) else {
            greeted.insert(ObjectIdentifier(link))
            return link.write(greeting)
        }
        link.write(answer)
        if closes { link.close() }
    }

    func link(_ link: Link, didClose reason: LinkFault) { links.removeAll { $0 === link } }
}

@Suite(.timeLimit(.minutes(10)))
struct FakeRedisTests {
    /// Three commands against a server that says `answer`; what each tag was told, in order.
    private func told(_ answer: [UInt8], closes: Bool, limits: RedisLimits = RedisWorld.quick) async throws
        -> [RedisFact]
    {
        let stage = try TestLoop("fake")
        let port = try await stage.run { stage in
            let server = try FakeRedis(loop: stage.loop, answer: answer, closes: closes)
            stage.keep(server)
            return server.port
        }
        let world = try RedisWorld()
        try await world.connect("redis://127.0.0.1:\(port)", limits: limits)
        try await world.with { client, _ in
            for tag in 1...3 as ClosedRange<UInt64> { try client.command(tag) { $0.arg("PING") } }
        }
        var out: [RedisFact] = []
        for tag in 1...3 as ClosedRange<UInt64> { out.append(try await world.answer(tag)) }
        _ = try await world.waiting()
        await world.end()
        await stage.end()
        // Nobody is told twice.
        let tags = world.facts.all.compactMap { fact -> UInt64? in
            switch fact {
            case .reply(let tag, _), .failed(let tag, _): tag
            case .state: nil
            }
        }
        #expect(tags.sorted() == [1, 2, 3])
        return out
    }

    @Test func anAnswerCutAtAnyByteLosesOnlyWhatWasNotWhole() async throws {
        let replies = ["$2\r\nab\r\n", "*2\r\n:1\r\n$-1\r\n", "-WRONGTYPE x\r\n"]
        let whole: [RedisFact] = [.reply(1, "\"ab\""), .reply(2, "[:1,nil]"), .failed(3, .init(.wrongType))]
        let bytes = Array(replies.joined().utf8)
        var ends: [Int] = []
        for reply in replies { ends.append((ends.last ?? 0) + reply.utf8.count) }
        for cut in 0...bytes.count {
            let out = try await told(Array(bytes[..<cut]), closes: true)
            for (index, fact) in out.enumerated() {
                let lost = RedisFact.failed(UInt64(index + 1), .init(.connectionLost(wasSent: true)))
                #expect(fact == (ends[index] <= cut ? whole[index] : lost), "cut at \(cut)")
            }
        }
    }

    @Test func aCommandThatNeverLeftWholeIsReportedAsUnsent() async throws {
        let stage = try TestLoop("fake")
        let port = try await stage.run { stage in
            let server = try FakeRedis(loop: stage.loop, answer: [], closes: true)
            stage.keep(server)
            return server.port
        }
        let world = try RedisWorld()
        try await world.connect("redis://127.0.0.1:\(port)")
        try await world.with { client, _ in
            try client.command(1) { $0.arg("PING") }
            // More than the buffers of both kernels hold, so that its end cannot have left.
            try client.command(2) { $0.arg([UInt8](repeating: 65, count: 64 << 20)) }
        }
        #expect(try await world.answer(1) == .failed(1, .init(.connectionLost(wasSent: true))))
        let unsent = try await world.answer(2)
        #expect(unsent == .failed(2, .init(.connectionLost(wasSent: false))))
        guard case .failed(_, let fault) = unsent else { return }
        #expect(!fault.mayHaveRun)
        await world.end()
        await stage.end()
    }

    @Test(arguments: [
        "hello\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", ":1x\r\n",
        "$99999999999999999999\r\n",
        "+A\r\n+B\r\n+C\r\n+D\r\n",
    ])
    func hostileRepliesEndTheConnection(text: String) async throws {
        let out = try await told(Array(text.utf8), closes: false)
        if text.hasPrefix("+A") {
            // One reply too many: three were told in order, and the fourth ends the connection.
            #expect(out == [.reply(1, "+A"), .reply(2, "+B"), .reply(3, "+C")])
        } else {
            #expect(out[0] == .failed(1, .init(.protocolViolation)))
            #expect(out[2] == .failed(3, .init(.connectionLost(wasSent: true))))
        }
    }

    @Test func aReplyOverTheLimitMayBeCutAnywhere() async throws {
        var limits = RedisWorld.quick
        limits.replyBytesMax = 100_000
        let whole = Array("$300000\r\n".utf8) + [UInt8](repeating: 65, count: 300_000) + Array("\r\n:5\r\n".utf8)
        let lost = RedisFault(.connectionLost(wasSent: true))
        // Once its length is known its command has failed; what follows is only passed over.
        for cut in [5, 9, 200_000, 300_010] {
            let fault = cut < 9 ? lost : RedisFault(.tooLarge)
            let out = try await told(Array(whole[..<cut]), closes: true, limits: limits)
            #expect(out[0] == .failed(1, fault) && out[1] == .failed(2, lost), "cut at \(cut)")
        }
        let out = try await told(whole, closes: true, limits: limits)
        #expect(out[0] == .failed(1, .init(.tooLarge)) && out[1] == .reply(2, ":5"))
    }

    /// What a server says of itself, and why a client is not ready to it; nil: it is.
    @Test(
        arguments: [
            ("redis_version:6.2.14\r\nrole:master", ":1", "Redis 6.2.14 is too old"),
            ("redis_version:7.0.0\r\nredis_mode:standalone\r\nrole:master", ":1", nil),
            ("redis_version:255.255.255\r\nrole:slave", ":1", nil), ("redis_version:unstable", ":1", nil),
            ("redis_mode:sentinel", "-ERR unknown command 'EVAL'", "a Sentinel answers here"),
            ("", "-ERR Error compiling script (new function): user_script:1: no symbol '#'", "does not run scripts"),
            ("", "-ERR unknown command 'EVAL'", "does not run scripts"),
            ("redis_version:7.0.0", "-NOPERM no", "may run no scripts"), ("", "-LOADING x", "LOADING x"),
            ("", "-NOAUTH x", "NOAUTH x"),
        ] as [(String, String, String?)])
    func aServerIsAcceptedByItsInfo(info: String, script: String, expected: String?) async throws {
        let stage = try TestLoop("fake")
        let greeting = "$\(info.utf8.count)\r\n\(info)\r\n-ERR cluster support disabled\r\n\(script)\r\n"
        let port = try await stage.run { stage in
            let server = try FakeRedis(loop: stage.loop, greeting: greeting)
            stage.keep(server)
            return server.port
        }
        let world = try RedisWorld()
        try await world.start("redis://127.0.0.1:\(port)")
        if let expected {
            let fault = try await world.waiting()
            #expect(fault.text.contains(expected), "\(fault)")
        } else {
            try await world.ready()
        }
        await world.end()
        await stage.end()
    }

    @Test func aServerThatNeverGreetsIsGivenUp() async throws {
        let silent = try Ports.silentListener(backlog: 8)
        defer { close(silent.fd) }
        let world = try RedisWorld()
        var limits = RedisWorld.quick
        limits.connectTimeoutNanos = 50_000_000
        try await world.start("redis://127.0.0.1:\(silent.port)", limits: limits)
        #expect(try await world.waiting().code == .timeout)
        await world.end()
    }
}
