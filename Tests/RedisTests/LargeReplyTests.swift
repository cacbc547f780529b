// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis
import Support
import Testing

/// One key whose reply is over the limit: its command fails, and the connection goes on.
@Suite(.timeLimit(.minutes(5)))
struct LargeReplyTests {
    /// Keys of each shape whose reply is over 100 000 bytes, and small ones.
    private static let setUp = """
        redis.call('SET', 'small', 'v')
        redis.call('HSET', 'pair', 'f', '1')
        redis.call('SET', 'text', string.rep('x', 300000))
        redis.call('HSET', 'fat', 'a', '1', 'b', string.rep('y', 3000000), 'c', '3')
        for i = 1, 20000 do redis.call('HSET', 'wide', 'f' .. i, i) end
        for i = 1, 40 do redis.call('RPUSH', 'long', string.rep('z', 9000)) end
        return 'OK'
        """

    @Test func aReplyOverTheLimitIsItsCommandsFaultAndTheConnectionGoesOn() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        var limits = RedisWorld.quick
        limits.replyBytesMax = 100_000
        try await world.connect(server.url, limits: limits)
        try await world.send(1, "EVAL", Self.setUp, "0")
        #expect(try await world.reply(1) == "\"OK\"")
        let nested = "return {redis.call('HGETALL', 'fat'), {1, redis.call('GET', 'text')}, 'end'}"
        for round in 0..<3 as Range<UInt64> {
            let first = 100 + round * 20
            let large: [[String]] = [
                ["GET", "text"], ["HGETALL", "fat"], ["HGETALL", "wide"], ["LRANGE", "long", "0", "-1"],
                ["MGET", "small", "text", "small"], ["EVAL", nested, "0"],
            ]
            try await world.with { client, _ in
                for (index, words) in large.enumerated() {
                    let tag = first + UInt64(index) * 2
                    try client.command(tag) { command in for word in words { command.arg(word) } }
                    try client.command(tag + 1) { command in for word in ["HGETALL", "pair"] { command.arg(word) } }
                }
            }
            for index in large.indices {
                let tag = first + UInt64(index) * 2
                guard case .failed(_, let fault) = try await world.answer(tag) else {
                    Issue.record("\(large[index]) was answered")
                    continue
                }
                #expect(fault.code.name == "too_large", "\(large[index]): \(fault)")
                #expect(try await world.answer(tag + 1) == .reply(tag + 1, "[\"f\",\"1\"]"), "after \(large[index])")
            }
        }
        #expect(await world.with { client, _ in client.connectionCount } == 1)
        await world.end()
    }
}
