// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// A Redis Cluster: masters, their replicas, and the map of slots.
///
/// A change reaches all nodes at once, or those that the caller names; the others keep their old map until `spread`.
public final class ClusterModel {
    /// Masters first, then their replicas in the same order.
    public let nodes: [Server]
    /// One for each of the first masters.
    public let shards: [ReplicationModel]
    private let views: [ClusterNode]
    private var map: ClusterMap

    /// - Parameters:
    ///   - options: of all nodes. The ports follow one after the other.
    ///   - ports: of each node, in place of those.
    public init(
        masters: Int = 3, replicasEach: Int = 1, options: ServerOptions = ServerOptions(port: 7000),
        ports: [UInt16] = [],
        seed: UInt64 = 1
    ) {
        var random = SmallRandom(seed: seed)
        let count = masters * (1 + replicasEach)
        var nodes: [Server] = []
        var peers: [ClusterNode.Peer] = []
        for index in 0..<count {
            var own = options
            own.port = ports.indices.contains(index) ? ports[index] : options.port + UInt16(index)
            own.seed = random.next()
            own.databases = 1
            nodes.append(Server(own))
            peers.append(ClusterNode.Peer(id: random.name(), host: own.host, port: own.port))
        }
        let map = ClusterMap(
            owners: (0..<Slot.count).map { slot in (0..<masters).first { slot < Slot.count * ($0 + 1) / masters } },
            masters: (0..<count).map { $0 < masters ? nil : ($0 - masters) % masters })
        self.nodes = nodes
        self.map = map
        views = nodes.indices.map { ClusterNode($0, peers, map) }
        for (node, view) in zip(nodes, views) { node.clusterNode = view }
        shards = (0..<masters).map { master in
            ReplicationModel(
                master: nodes[master], replicas: map.replicas(of: master).map { nodes[$0] }, seed: random.next())
        }
    }

    public static func slot(of key: String) -> Int { Slot.of(Bytes(key)) }

    private func index(of server: Server) -> Int? { nodes.firstIndex { $0 === server } }

    /// The node that owns the slot by the newest map.
    public func owner(of slot: Int) -> Server? { map.owners[slot].map { nodes[$0] } }

    private func shard(of index: Int) -> ReplicationModel? {
        shards.first { shard in
            shard.master === nodes[index] || shard.replicas.contains { $0 === nodes[index] }
        }
    }

    // MARK: Knowledge

    /// These nodes, or all, learn the newest map. A node keeps what it knows of moving slots that are still its own.
    public func spread(to learners: [Server]? = nil) {
        for server in learners ?? nodes {
            guard let index = index(of: server) else { continue }
            let view = views[index]
            view.map = map
            view.leaving = view.leaving.filter { map.owners[$0.key] == index }
            view.arriving = view.arriving.filter { map.owners[$0.key] != index }
        }
    }

    private func change(knownTo learners: [Server]?, _ body: (inout ClusterMap) -> Void) {
        body(&map)
        map.epoch += 1
        spread(to: learners)
    }

    /// CLUSTERDOWN: too few masters are reachable, for all nodes or these.
    public func setDown(_ isDown: Bool, knownTo learners: [Server]? = nil) {
        change(knownTo: learners) { $0.isDown = isDown }
    }

    /// No node serves the slot any more.
    public func forget(slot: Int, knownTo learners: [Server]? = nil) {
        change(knownTo: learners) { $0.owners[slot] = nil }
    }

    // MARK: Moving a slot

    /// Begins to move a slot. Its keys move one by one from now on.
    public func beginMove(of slot: Int, to target: Server) {
        guard let source = map.owners[slot], let target = index(of: target), source != target else { return }
        views[target].arriving[slot] = source
        views[source].leaving[slot] = target
    }

    /// Moves up to `count` keys of the slot, in the order in which they were added. Returns the number of keys left.
    @discardableResult
    public func moveKeys(of slot: Int, count: Int = .max) -> Int {
        guard let source = map.owners[slot], let target = views[source].leaving[slot] else { return 0 }
        let keys = nodes[source].databases[0].keys.filter { Slot.of($0) == slot }
        for key in keys.prefix(count) { moveKey(key, from: nodes[source], to: nodes[target]) }
        return max(0, keys.count - count)
    }

    /// Moves one key of a slot that is moving.
    public func moveKey(_ key: String) {
        let slot = Slot.of(Bytes(key))
        guard let source = map.owners[slot], let target = views[source].leaving[slot] else { return }
        moveKey(Bytes(key), from: nodes[source], to: nodes[target])
    }

    private func moveKey(_ key: Bytes, from source: Server, to target: Server) {
        guard let value = source.databases[0][key] else { return }
        let end = source.databases[0].expiry(of: key)
        target.advance(to: source.nowMs)
        target.take(key, value, end: end)
        source.give(key)
    }

    /// Ends the move: the target owns the slot.
    public func endMove(of slot: Int, knownTo learners: [Server]? = nil) {
        guard let source = map.owners[slot], let target = views[source].leaving[slot] else { return }
        views[source].leaving[slot] = nil
        views[target].arriving[slot] = nil
        change(knownTo: learners) { $0.owners[slot] = target }
        // The two nodes of a move always know of its end.
        spread(to: [nodes[source], nodes[target]])
    }

    /// Moves the slot at once.
    public func move(slot: Int, to target: Server, knownTo learners: [Server]? = nil) {
        beginMove(of: slot, to: target)
        moveKeys(of: slot)
        endMove(of: slot, knownTo: learners)
    }

    // MARK: Failing over

    /// The replica takes over its master's slots with what it has. See `ReplicationModel.failOver`.
    @discardableResult
    public func failOver(to replica: Server, oldMasterFollows: Bool = true, knownTo learners: [Server]? = nil) -> Int {
        guard let index = index(of: replica), let old = map.masters[index], let shard = shard(of: index) else {
            return 0
        }
        let lost = shard.failOver(to: replica, oldMasterFollows: oldMasterFollows)
        change(knownTo: learners) { map in
            for slot in map.owners.indices where map.owners[slot] == old { map.owners[slot] = index }
            for node in map.masters.indices where map.masters[node] == old { map.masters[node] = index }
            map.masters[index] = nil
            map.masters[old] = index
        }
        spread(to: [replica] + (oldMasterFollows ? [nodes[old]] : []))
        return lost
    }

    /// An old master that was away copies the new one from now on.
    public func rejoin(_ server: Server) {
        guard let index = index(of: server), let master = map.masters[index] else { return }
        shard(of: master)?.rejoin(server)
        spread(to: [server])
    }
}

extension Server {
    /// A key arrives from another node.
    func take(_ key: Bytes, _ value: Value, end: Int64) {
        databases[0].store(key, value)
        if end >= 0 { databases[0].setExpiry(of: key, end) }
        for words in Effects.restoring(key, value, end) { stream.append(words, database: 0) }
    }

    /// A key has left for another node.
    func give(_ key: Bytes) {
        databases[0].remove(key)
        stream.append([Bytes("DEL"), key], database: 0)
    }
}

/// Commands that make a key what it is.
enum Effects {
    static func restoring(_ key: Bytes, _ value: Value, _ end: Int64) -> [[Bytes]] {
        var commands: [[Bytes]] = [[Bytes("DEL"), key]]
        switch value {
        case .string(let bytes): commands.append([Bytes("SET"), key, bytes])
        case .hash(let fields):
            var words = [Bytes("HSET"), key]
            fields.forEach { words += [$0, $1] }
            commands.append(words)
        case .set(let members): commands.append([Bytes("SADD"), key] + members.allKeys)
        case .sorted(let set):
            commands.append([Bytes("ZADD"), key] + set.items.flatMap { [Bytes(digits(of: $0.score)), $0.member] })
        case .list(let elements): commands.append([Bytes("RPUSH"), key] + elements)
        }
        if end >= 0 { commands.append([Bytes("PEXPIREAT"), key, Bytes(end)]) }
        return commands
    }
}
