// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import RedisModel

@Suite struct ServerTests {
    @Test func commandsMayComeInAnyPieces() {
        let server = Server()
        let client = server.connect()
        let bytes = Wire.command(["SET", "a", "x\r\ny"].map { Array($0.utf8) }) + Array("GET a\r\n".utf8)
        var answer: [UInt8] = []
        for byte in bytes { answer += server.receive([byte], from: client, nowMs: 1) }
        #expect(String(decoding: answer, as: UTF8.self) == "+OK\r\n$4\r\nx\r\ny\r\n")
    }

    @Test func brokenBytesEndTheConnection() {
        let server = Server()
        let client = server.connect()
        let answer = server.receive(Array("*1\r\n:1\r\n".utf8), from: client, nowMs: 1)
        #expect(String(decoding: answer, as: UTF8.self) == "-ERR Protocol error: expected '$', got ':'\r\n")
        #expect(!server.isOpen(client))
    }

    @Test func keysEndInTheTimeThatIsHandedIn() {
        let talk = Talk(Server())
        talk.say("SET a 1 PX 100", at: 1000)
        #expect(talk.say("PTTL a", at: 1060) == ":40")
        #expect(talk.say("EXISTS a", at: 1100) == ":1")
        #expect(talk.say("EXISTS a", at: 1101) == ":0")
        #expect(talk.say("DBSIZE", at: 1101) == ":0")
    }

    @Test func aScriptSeesOneTime() {
        let talk = Talk(Server())
        let script = "local a = redis.call('TIME') return a[1] .. ' ' .. a[2]"
        #expect(talk.send("EVAL", script, "0", at: 12_345_678) == "$12 12345 678000")
    }

    @Test func aLoginIsWanted() {
        var options = ServerOptions()
        options.password = "pw"
        let talk = Talk(Server(options))
        #expect(talk.say("GET a") == "-NOAUTH Authentication required.")
        #expect(talk.say("AUTH no") == "-WRONGPASS invalid username-password pair or user is disabled.")
        #expect(talk.say("AUTH pw") == "+OK")
        #expect(talk.say("GET a") == "$-1")
    }

    @Test func troublesRefuseCommands() {
        let server = Server()
        let talk = Talk(server)
        server.troubles.isLoading = true
        #expect(talk.say("GET a") == "-LOADING Redis is loading the dataset in memory")
        server.troubles = ServerTroubles()
        server.troubles.isBusy = true
        #expect(talk.say("GET a").hasPrefix("-BUSY "))
        server.troubles = ServerTroubles()
        server.troubles.cannotSave = true
        #expect(talk.say("GET a") == "$-1")
        #expect(talk.say("SET a 1").hasPrefix("-MISCONF "))
        #expect(talk.send("EVAL", "#!lua flags=no-writes\nreturn 1", "0") == ":1")
        #expect(talk.send("EVAL", "#!lua\nreturn 1", "0").hasPrefix("-MISCONF "))
    }

    @Test func fullMemoryRefusesWhatGrows() {
        let server = Server()
        let talk = Talk(server)
        server.setMaxMemory((1 << 20) + 4_000)
        var count = 0
        while talk.say("SET key\(count) \(String(repeating: "v", count: 50))") == "+OK" { count += 1 }
        #expect((10...60).contains(count))
        #expect(talk.say("SET b 1") == "-OOM command not allowed when used memory > 'maxmemory'.")
        #expect(talk.send("EVAL", "#!lua\nreturn 1", "0").hasPrefix("-OOM "))
        #expect(talk.send("EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', 'b', 1)", "0") == "+OK")
        for index in 0..<count { talk.say("DEL key\(index)") }
        #expect(talk.say("SET b 1") == "+OK")
    }

    @Test func aRestartKeepsTheSnapshotAlone() {
        let server = Server()
        let talk = Talk(server)
        talk.say("SET a 1")
        let snapshot = server.snapshot
        talk.say("SET a 2")
        let sum = talk.send("SCRIPT", "LOAD", "return 1").split(separator: " ").last.map { String($0) } ?? ""
        let runID = server.runID
        server.restart(with: snapshot)
        #expect(!server.isOpen(talk.client))
        #expect(server.runID != runID)
        let next = Talk(server)
        #expect(next.say("GET a") == "$1 1")
        #expect(next.say("EVALSHA \(sum) 0") == "-NOSCRIPT No matching script. Please use EVAL.")
    }

    @Test func equalCallsGiveEqualBytes() {
        func run(_ seed: UInt64) -> ([UInt8], UInt64) {
            var options = ServerOptions()
            options.seed = seed
            let server = Server(options)
            let client = server.connect()
            var generator = CommandGenerator(seed: 7, version: "7.0.15")
            var scripts = ScriptGenerator(seed: 8, version: "7.0.15")
            var bytes: [UInt8] = []
            for index in 0..<2000 {
                let command = index % 2 == 0 ? generator.next() : scripts.next()
                bytes += server.receive(Wire.command(command), from: client, nowMs: 1000 + Int64(index))
            }
            for word in ["SPOP m1", "SRANDMEMBER m2", "HRANDFIELD h1", "RANDOMKEY", "INFO"] {
                bytes += server.receive(Array((word + "\r\n").utf8), from: client, nowMs: 5000)
            }
            return (bytes, server.snapshot.digest)
        }
        let first = run(1)
        let second = run(1)
        #expect(first == second)
        #expect(run(2).0 != first.0)
    }

    @Test func sentinelsNameTheMaster() {
        let server = Server()
        server.sentinelNames("main", at: "10.0.0.1", port: 6380)
        let talk = Talk(server)
        #expect(talk.say("SENTINEL get-master-addr-by-name main") == "*2 $8 10.0.0.1 $4 6380")
        #expect(talk.say("SENTINEL get-master-addr-by-name other") == "*-1")
        #expect(talk.say("INFO server").contains("redis_mode:sentinel"))
        #expect(talk.say("GET a") == "-ERR unknown command 'GET', with args beginning with: 'a' ")
        server.sentinelNames("main", at: "10.0.0.2", port: 6381)
        #expect(talk.say("SENTINEL get-master-addr-by-name main") == "*2 $8 10.0.0.2 $4 6381")
        #expect(talk.say("SENTINEL master main").hasSuffix("$12 config-epoch $1 1"))
        #expect(talk.say("SENTINEL master other").hasPrefix("-ERR No such master"))
    }
}
