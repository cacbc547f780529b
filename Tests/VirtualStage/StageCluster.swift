// SPDX-License-Identifier: Apache-2.0
import RedisModel
import SimulatedSystem

/// A Redis Cluster on a stage: three masters with a third of the slots each, and a replica of each.
///
/// Unchecked Sendable: a test has one thread at a time.
package final class StageCluster: @unchecked Sendable {
    package static let masterCount = 3
    /// Masters first, then their replicas in the same order.
    package let nodes: [StageRedis]
    private let model: ClusterModel
    private let system: SimulatedSystem

    init(_ system: SimulatedSystem) {
        self.system = system
        model = ClusterModel(masters: Self.masterCount, options: ServerOptions(host: "127.0.0.5", port: 7000))
        nodes = model.nodes.map { StageRedis(system, $0) }
        replicate()
    }

    private func replicate() {
        for shard in model.shards { shard.catchUp() }
        system.after(nanos: 10_000_000) { [weak self] in self?.replicate() }
    }

    /// As `redis.url` in a configuration: some of the nodes, which report the others.
    var urls: String { "[" + nodes.prefix(2).map { "redis://\($0.address)" }.joined(separator: ", ") + "]" }

    private func node(of server: Server?) -> StageRedis? { nodes.first { $0.server === server } }

    /// A command as a person types it, at the node that has its key; the reply's bytes.
    func inline(_ line: String) -> [UInt8] {
        let words = line.split(separator: " ")
        let slot = words.count > 1 ? ClusterModel.slot(of: String(words[1])) : 0
        return node(of: model.owner(of: slot))?.inline(line) ?? []
    }

    /// Whether the node serves the key now.
    package func isOn(_ node: Int, _ key: String) -> Bool {
        model.owner(of: ClusterModel.slot(of: key)) === nodes[node].server
    }

    // MARK: What a test does

    /// The first so many names of a series that fit.
    package func names(_ prefix: String, _ count: Int, _ fits: (String) -> Bool) -> [String] {
        var found: [String] = []
        var index = 0
        while found.count < count {
            let name = "\(prefix)-\(index)"
            if fits(name) { found.append(name) }
            index += 1
        }
        return found
    }

    /// As by CLUSTER FAILOVER: the replica takes over with all that its master has.
    package func failOver(to replica: Int) {
        for shard in model.shards { shard.catchUp() }
        model.failOver(to: nodes[replica].server)
    }

    /// The replica receives nothing of its master any more.
    package func cut(_ replica: Int) {
        for shard in model.shards where shard.replicas.contains(where: { $0 === nodes[replica].server }) {
            shard.setLink(of: nodes[replica].server, isUp: false)
        }
    }

    /// A master's process ends. After two seconds a replica takes over with what it has.
    package func kill(_ master: Int, takenOverBy replica: Int) {
        nodes[master].kill()
        system.after(nanos: 2_000_000_000) { [self] in
            model.failOver(to: nodes[replica].server, oldMasterFollows: false)
        }
    }
}
