// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Testing

@testable import RedisModel

/// The model answers what redis-server answers. `CARILLON_MODEL_COMMANDS` sets the number of commands,
/// `CARILLON_MODEL_SEED` repeats a run.
@Suite struct DifferentialTests {
    static func setting(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

    @Test func randomCommandsAndScriptsHaveEqualReplies() throws {
        let seed = Self.setting("CARILLON_MODEL_SEED") ?? .random(in: 0..<1_000_000)
        let count = Int(Self.setting("CARILLON_MODEL_COMMANDS") ?? 5_000)
        let server = try RedisServer()
        var both = try Differential(port: server.port) { Loop.wallMs() }
        print("redis-server \(both.version), \(count) commands, CARILLON_MODEL_SEED=\(seed)")
        var plain = CommandGenerator(seed: seed, version: both.version)
        var scripts = ScriptGenerator(seed: seed &+ 1, version: both.version)
        var left = count
        while left > 0 {
            let batch = (0..<min(left, 200)).map { _ in plain.below(2) == 0 ? plain.next() : scripts.next() }
            left -= batch.count
            if let difference = try both.run(batch) {
                Issue.record("CARILLON_MODEL_SEED=\(seed): \(difference)")
                return
            }
        }
        let difference = try both.compareData()
        #expect(difference == nil, "CARILLON_MODEL_SEED=\(seed): \(difference?.description ?? "")")
    }

    /// Small hashes are lists, large ones are tables. Both servers draw by chance.
    @Test(arguments: [100, 300, 1000])
    func `so many different fields are drawn from a hash with their values`(size: Int) throws {
        let server = try RedisServer()
        let real = try RealServer(port: server.port)
        let model = Server()
        let client = model.connect()
        let fill = ["HSET", "h"] + (0..<size).flatMap { ["d\($0)", "v\($0)"] }
        for (count, wanted) in [("256", min(size, 256)), ("1", 1), ("0", 0), ("5000", size)] {
            let draw = ["HRANDFIELD", "h", count, "WITHVALUES"]
            var place = 0
            let bytes = [fill, draw].map {
                model.receive(Wire.command($0.map { Array($0.utf8) }), from: client, nowMs: 1)
            }[1]
            _ = try real.ask(fill)
            for tree in [try real.ask(draw), try #require(ReplyTree(bytes, &place))] {
                let texts = tree.elements.map {
                    if case .bulk(let text) = $0 { String(decoding: text, as: UTF8.self) } else { "" }
                }
                let drawn = stride(from: 0, to: texts.count, by: 2).map { (texts[$0], texts[$0 + 1]) }
                #expect(drawn.count == wanted && Set(drawn.map(\.0)).count == wanted)
                #expect(drawn.allSatisfy { $0.0.hasPrefix("d") && $0.1 == "v" + $0.0.dropFirst() })
            }
        }
    }

    @Test func theRulesOfCommandsAreThoseOfRedis7() throws {
        let server = try RedisServer()
        let both = try Differential(port: server.port) { Loop.wallMs() }
        guard both.version.hasPrefix("7.0.") else { return }
        let differences = try CommandRules.differences(RealServer(port: server.port))
        #expect(differences == [])
    }

    @Test func linesOfINFOHaveTheNamesOfRedis() throws {
        func names(_ text: String) -> [String] {
            text.split(whereSeparator: \.isNewline).filter {
                $0.first != "#" && !$0.hasPrefix("cmdstat_") && !$0.hasPrefix("db")
            }
            .compactMap { $0.split(separator: ":").first.map { String($0) } }
        }
        let server = try RedisServer()
        let real = Set(names(try server.command("INFO all")))
        let model = Server()
        let client = model.connect()
        let own = names(
            String(decoding: model.receive(Array("INFO all\r\n".utf8), from: client, nowMs: 1), as: UTF8.self)
        )
        .filter { !$0.hasPrefix("$") }
        #expect(own.filter { !real.contains($0) } == [])
        // What the client reads.
        let wanted = [
            "redis_version", "redis_mode", "run_id", "master_replid", "role", "aof_enabled", "server_time_usec",
            "connected_slaves", "maxmemory_policy",
        ]
        #expect(wanted.filter { !own.contains($0) } == [])
    }

    /// With the types of RESP3.
    @Test func repliesOfTheThirdProtocolAreEqual() throws {
        let server = try RedisServer()
        let lines = [
            "SET s 1", "GET s", "GET none", "HSET h a 1", "HGETALL h", "SADD m a", "SMEMBERS m", "ZADD z 1.5 a 2 b",
            "ZSCORE z a",
            "ZMSCORE z a x", "ZRANGE z 0 -1 WITHSCORES", "ZADD z INCR 1 a", "ZADD z XX INCR 1 x", "ZPOPMIN z",
            "ZPOPMAX z 1",
            "HRANDFIELD h 1 WITHVALUES", "SPOP none", "SPOP m 1", "LPOP none 1",
            "EVAL \"return {1, 'a', false, {ok='F'}}\" 0",
            "EVAL \"return redis.call('HGETALL', 'h')\" 0", "EVAL \"return {double=1.5}\" 0", "MGET s none",
            "KEYS none",
            "ZRANK z none", "HELLO 4", "HELLO x", "EVAL \"return nil\" 0", "HSCAN h 0", "SINTER m none",
        ]
        let real = try Ports.exchange(
            port: server.port, send: Array((["HELLO 3"] + lines + ["QUIT", ""]).joined(separator: "\r\n").utf8))
        let model = Server()
        let client = model.connect()
        _ = model.receive(Array("HELLO 3\r\n".utf8), from: client, nowMs: 1)
        let own = model.receive(Array((lines + ["QUIT", ""]).joined(separator: "\r\n").utf8), from: client, nowMs: 1)
        let text = String(decoding: real, as: UTF8.self)
        let behind = text.firstRange(of: "modules\r\n*0\r\n").map { String(text[$0.upperBound...]) }
        #expect(behind?.split(separator: "\r\n") == String(decoding: own, as: UTF8.self).split(separator: "\r\n"))
    }
}
