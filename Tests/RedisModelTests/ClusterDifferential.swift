// SPDX-License-Identifier: Apache-2.0
import Support

@testable import RedisModel

/// A real cluster of three masters and a model of it, given the same commands and the same moves.
struct ClusterDifferential {
    let cluster: RedisCluster
    let model: ClusterModel
    private let connections: [RealServer]
    private let clients: [ClientID]
    private var words: CommandGenerator
    private let now: () -> Int64

    init(_ cluster: RedisCluster, seed: UInt64, now: @escaping () -> Int64) throws {
        self.cluster = cluster
        self.now = now
        model = ClusterModel(replicasEach: 0, ports: cluster.nodes.map(\.port), seed: seed)
        connections = try cluster.nodes.map { try RealServer(port: $0.port) }
        clients = model.nodes.map { $0.connect() }
        words = CommandGenerator(seed: seed, version: "7.0.15")
    }

    static let tags = ["{a}", "{b}", "{c}", "{d}"]

    /// Random commands at random nodes. Returns the first difference.
    mutating func run(_ count: Int) throws -> String? {
        for _ in 0..<count {
            let node = words.below(clients.count)
            if words.below(3) == 0, let difference = try run(["ASKING"], at: node) { return difference }
            if let difference = try run(command(), at: node) { return difference }
        }
        return nil
    }

    func run(_ words: [String], at node: Int) throws -> String? {
        let words = words.map { Array($0.utf8) }
        let answer = try connections[node].ask([words])[0]
        let bytes = model.nodes[node].receive(Wire.command(words), from: clients[node], nowMs: now())
        var place = 0
        let tree = ReplyTree(bytes, &place)
        if answer == tree { return nil }
        return
            "node \(node), \(Wire.text(words))\n  redis-server: \(answer)\n  model:        \(tree?.description ?? "nothing")"
    }

    private mutating func key(_ tag: String? = nil) -> String {
        (tag ?? words.pick(Self.tags)) + words.pick(["1", "2", "3"])
    }

    private mutating func command() -> [String] {
        let tag = words.below(6) == 0 ? nil : words.pick(Self.tags)
        switch words.below(10) {
        case 0, 1: return ["SET", key(tag), words.member()]
        case 2: return ["GET", key(tag)]
        case 3: return ["MGET", key(tag), key(tag)]
        case 4: return ["DEL"] + words.some(2) { _ in [Self.tags[0] + "1"] } + [key(tag)]
        case 5: return ["DBSIZE"]
        case 6: return ["EVAL", "return redis.call('GET', KEYS[1])", "1", key(tag)]
        case 7: return ["EVAL", "#!lua\nreturn redis.call('GET', ARGV[1])", "1", key(tag), key(tag)]
        case 8: return ["EVAL", "#!lua\nreturn redis.call('MGET', KEYS[1], ARGV[1])", "1", key(tag), key()]
        default: return ["EVAL", words.pick(["", "#!lua\n"]) + "return redis.call('SET', ARGV[1], 1)", "0", key(tag)]
        }
    }

    // MARK: Moves

    func beginMove(of slot: Int, to target: Int) throws {
        try cluster.beginMove(of: slot, to: target)
        model.beginMove(of: slot, to: model.nodes[target])
    }

    /// A key may be at both nodes, after an ASKING; the moved one replaces the other.
    func moveKey(_ key: String, of slot: Int, to target: Int) throws {
        let source = cluster.nodes[try cluster.owner(of: slot)]
        let answer = try source.command(
            "MIGRATE 127.0.0.1 \(cluster.nodes[target].port) \"\" 0 5000 REPLACE KEYS \(key)")
        guard !answer.hasPrefix("-") else { throw SetupFault(answer) }
        model.moveKey(key)
    }

    func endMove(of slot: Int, to target: Int) throws {
        try cluster.endMove(of: slot, to: target)
        model.endMove(of: slot)
    }

    /// The maps that the nodes give, without the nodes' ids.
    func mapsDiffer() throws -> String? {
        for node in clients.indices {
            let real = try connections[node].ask(["CLUSTER", "SLOTS"])
            let bytes = model.nodes[node].receive(
                Wire.command(["CLUSTER", "SLOTS"].map { Array($0.utf8) }), from: clients[node], nowMs: now())
            var place = 0
            guard let own = ReplyTree(bytes, &place) else { return "the model gives no map" }
            let (left, right) = (Self.ranges(real), Self.ranges(own))
            if left != right { return "map of node \(node)\n  redis-server: \(left)\n  model:        \(right)" }
        }
        return nil
    }

    private static func ranges(_ map: ReplyTree) -> [String] {
        map.elements.map { range in
            let parts = range.elements
            return parts.prefix(2).map(\.description).joined(separator: "-") + " "
                + parts.dropFirst(2).map { $0.elements.prefix(2).map(\.description).joined(separator: ":") }
                .joined(separator: " ")
        }
    }
}
