// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import RedisModel

@Suite struct ClusterModelTests {
    @Test func aNodeThatDoesNotKnowTheMoveSendsClientsBack() {
        let cluster = ClusterModel()
        let slot = ClusterModel.slot(of: "a")
        let source = cluster.owner(of: slot) ?? cluster.nodes[0]
        let target = cluster.nodes.prefix(3).first { $0 !== source } ?? cluster.nodes[1]
        let third = cluster.nodes.prefix(3).first { $0 !== source && $0 !== target } ?? cluster.nodes[2]
        Talk(source).say("SET a 1")
        cluster.move(slot: slot, to: target, knownTo: [])
        #expect(Talk(target).say("GET a") == "$1 1")
        #expect(Talk(source).say("GET a") == "-MOVED \(slot) 127.0.0.1:\(target.options.port)")
        #expect(Talk(third).say("GET a") == "-MOVED \(slot) 127.0.0.1:\(source.options.port)")
        cluster.spread()
        #expect(Talk(third).say("GET a") == "-MOVED \(slot) 127.0.0.1:\(target.options.port)")
    }

    @Test func aReplicaTakesOverWithoutTheTail() {
        let cluster = ClusterModel()
        let slot = ClusterModel.slot(of: "a")
        let master = cluster.owner(of: slot) ?? cluster.nodes[0]
        let shard = cluster.shards.first { $0.master === master }
        let replica = shard?.replicas.first ?? master
        #expect(replica !== master)
        Talk(master).say("SET a 1")
        shard?.catchUp()
        Talk(master).say("SET a 2")
        #expect(cluster.failOver(to: replica) == 1)
        #expect(cluster.owner(of: slot) === replica)
        #expect(Talk(replica).say("GET a") == "$1 1")
        #expect(Talk(master).say("GET a") == "-MOVED \(slot) 127.0.0.1:\(replica.options.port)")
        // The other way round again.
        #expect(cluster.failOver(to: master) == 0)
        #expect(Talk(master).say("GET a") == "$1 1")
    }

    @Test func aReplicaAnswersReadsAfterREADONLY() {
        let cluster = ClusterModel()
        let slot = ClusterModel.slot(of: "a")
        let master = cluster.owner(of: slot) ?? cluster.nodes[0]
        let shard = cluster.shards.first { $0.master === master }
        Talk(master).say("SET a 1")
        shard?.catchUp()
        let talk = Talk(shard?.replicas.first ?? master)
        #expect(talk.say("GET a").hasPrefix("-MOVED "))
        #expect(talk.say("READONLY") == "+OK")
        #expect(talk.say("GET a") == "$1 1")
        #expect(talk.say("SET a 2").hasPrefix("-MOVED "))
    }

    @Test func aClusterThatIsDownAnswersNothing() {
        let cluster = ClusterModel()
        let talk = Talk(cluster.owner(of: ClusterModel.slot(of: "a")) ?? cluster.nodes[0])
        cluster.setDown(true)
        #expect(talk.say("GET a") == "-CLUSTERDOWN The cluster is down")
        #expect(talk.say("CLUSTER INFO").contains("cluster_state:fail"))
        cluster.setDown(false)
        #expect(talk.say("GET a") == "$-1")
        cluster.forget(slot: ClusterModel.slot(of: "a"))
        #expect(talk.say("GET a") == "-CLUSTERDOWN Hash slot not served")
    }

    @Test func keysInASlotMoveWithTheirLife() {
        let cluster = ClusterModel()
        let slot = ClusterModel.slot(of: "{a}1")
        let source = cluster.owner(of: slot) ?? cluster.nodes[0]
        let target = cluster.nodes.prefix(3).first { $0 !== source } ?? cluster.nodes[1]
        Talk(source).say("SET {a}1 x PX 5000")
        Talk(source).say("ZADD {a}2 1.5 m")
        cluster.move(slot: slot, to: target)
        #expect(Talk(target).say("PTTL {a}1") == ":5000")
        #expect(Talk(target).say("ZSCORE {a}2 m") == "$3 1.5")
        #expect(Talk(source).say("DBSIZE") == ":0")
        let shard = cluster.shards.first { $0.master === target }
        shard?.catchUp()
        #expect(shard?.replicas.first?.snapshot.digest == target.snapshot.digest)
    }
}
