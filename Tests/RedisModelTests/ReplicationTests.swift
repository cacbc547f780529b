// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import RedisModel

@Suite struct ReplicationTests {
    private static func pair() -> (master: Server, replica: Server, model: ReplicationModel) {
        let master = Server(ServerOptions(port: 1))
        let replica = Server(ServerOptions(port: 2))
        return (master, replica, ReplicationModel(master: master, replicas: [replica]))
    }

    @Test func aReplicaThatReceivedAllHasTheSameData() {
        for seed in UInt64(1)...8 {
            let (master, replica, model) = Self.pair()
            let client = master.connect()
            var plain = CommandGenerator(seed: seed, version: "7.0.15")
            var scripts = ScriptGenerator(seed: seed &+ 1, version: "7.0.15")
            for index in 0..<1500 {
                var words = plain.below(2) == 0 ? plain.next() : scripts.next()
                if plain.below(10) == 0 { words = ["SPOP", "m1", "2"].map { Array($0.utf8) } }
                if plain.below(10) == 0 { words = ["PEXPIRE", "h1", "3"].map { Array($0.utf8) } }
                _ = master.receive(Wire.command(words), from: client, nowMs: 1_700_000_000_000 + Int64(index))
                if plain.below(5) == 0 { model.pass(plain.below(9), to: replica) }
            }
            model.catchUp()
            #expect(model.lag(of: replica) == 0)
            #expect(replica.snapshot.digest == master.snapshot.digest, "seed \(seed)")
        }
    }

    @Test func aFailoverLosesTheTail() {
        let (master, replica, model) = Self.pair()
        let talk = Talk(master)
        let other = Talk(replica)
        talk.say("SET a 1")
        model.catchUp()
        talk.say("SET a 2")
        #expect(talk.send("EVAL", "redis.call('SET', 'b', 1) redis.call('SET', 'c', 1)", "0") == "$-1")
        #expect(model.lag(of: replica) == 3)
        #expect(other.say("SET a 9") == "-READONLY You can't write against a read only replica.")
        model.pass(2, to: replica)
        let before = talk.say("INFO replication").split(separator: " ").first { $0.hasPrefix("master_replid:") }
        #expect(model.failOver(to: replica) == 1)
        #expect(other.say("MGET a b c") == "*3 $1 2 $1 1 $-1")
        #expect(other.say("SET a 9") == "+OK")
        let after = other.say("INFO replication").split(separator: " ").first { $0.hasPrefix("master_replid:") }
        #expect(before != nil && before != after)
        #expect(talk.say("MGET a b c") == "*3 $1 2 $1 1 $-1")
        #expect(talk.say("SET a 3").hasPrefix("-READONLY "))
        #expect(talk.say("ROLE").hasPrefix("*5 $5 slave"))
    }

    @Test func anOldMasterGoesOnAloneUntilItRejoins() {
        let (master, replica, model) = Self.pair()
        let talk = Talk(master)
        model.failOver(to: replica, oldMasterFollows: false)
        #expect(talk.say("SET a 1") == "+OK")
        #expect(Talk(replica).say("SET a 2") == "+OK")
        model.rejoin(master)
        #expect(talk.say("GET a") == "$1 2")
        #expect(talk.say("SET a 3").hasPrefix("-READONLY "))
    }

    @Test func aBrokenLinkCountsAsNoReplica() {
        let (master, replica, model) = Self.pair()
        master.setMinReplicas(1)
        let talk = Talk(master)
        #expect(talk.say("SET a 1") == "+OK")
        #expect(talk.say("WAIT 1 0") == ":0")
        model.catchUp()
        #expect(talk.say("WAIT 1 0") == ":1")
        model.setLink(of: replica, isUp: false)
        #expect(talk.say("SET a 2") == "-NOREPLICAS Not enough good replicas to write.")
        model.catchUp()
        #expect(Talk(replica).say("GET a") == "$1 1")
    }
}
