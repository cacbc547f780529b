// SPDX-License-Identifier: Apache-2.0
import Redis
import RedisModel
import SimulatedFleet
import SimulatedSystem

/// The Redis of the world: one server, a master with replicas and Sentinels, or a cluster.
final class RedisFleet {
    /// All servers with data, by their place in a cluster.
    let seats: [RedisSeat]
    private let sentinels: [RedisSeat]
    let cluster: ClusterModel?
    /// Each master with its replicas.
    let groups: [ReplicationModel]
    private let system: SimulatedSystem
    /// Masters whose replicas receive nothing at present.
    var lagging: Set<ObjectIdentifier> = []
    private static let host = "127.0.0.5"
    private static let masterName = "main"

    init(_ system: SimulatedSystem, _ shape: Plan.Redis, seed: UInt64) {
        self.system = system
        var options = ServerOptions(host: Self.host, port: 6379)
        options.seed = seed
        var sentinels: [Server] = []
        switch shape {
        case .single:
            cluster = nil
            groups = [ReplicationModel(master: Server(options), replicas: [], seed: seed)]
        case .sentinel:
            cluster = nil
            let servers = (0..<3).map { index in
                options.port = 6379 + UInt16(index)
                options.seed = seed &+ UInt64(index)
                return Server(options)
            }
            groups = [ReplicationModel(master: servers[0], replicas: Array(servers[1...]), seed: seed)]
            sentinels = (0..<3).map { Server(ServerOptions(host: Self.host, port: 26379 + UInt16($0))) }
        case .cluster(let masters):
            options.port = 7000
            let cluster = ClusterModel(masters: masters, options: options, seed: seed)
            self.cluster = cluster
            groups = cluster.shards
        }
        func seat(_ server: Server) -> RedisSeat {
            RedisSeat(system, server: server, address: "\(Self.host):\(server.options.port)")
        }
        seats = (cluster?.nodes ?? groups.flatMap { [$0.master] + $0.replicas }).map(seat)
        self.sentinels = sentinels.map(seat)
        tellSentinels()
        if groups.contains(where: { !$0.replicas.isEmpty }) { replicate() }
    }

    /// The replicas receive what their masters have written, again and again.
    private func replicate() {
        for group in groups where !lagging.contains(ObjectIdentifier(group)) { group.catchUp() }
        system.after(nanos: system.number(10_000_000...History.replicationNanos)) { [weak self] in self?.replicate() }
    }

    /// The addresses of all servers.
    var addresses: [String] { (seats + sentinels).map(\.address) }

    func seat(of server: Server) -> RedisSeat? { seats.first { $0.server === server } }

    /// What a worker's configuration says of it.
    func topology() throws -> RedisTopology {
        let sentinels = try sentinels.map { try RedisEndpoint(url: "redis://\($0.address)") }
        if let first = sentinels.first {
            return .sentinel(RedisSentinels(masterName: Self.masterName, nodes: sentinels, master: first))
        }
        let nodes = try seats.map { try RedisEndpoint(url: "redis://\($0.address)") }
        return cluster == nil ? nodes.first.map { .single($0) } ?? .cluster([]) : .cluster(nodes)
    }

    /// A Sentinel that learns nothing of a new master, by its place.
    var cutOffSentinel: Int?
    var sentinelCount: Int { sentinels.count }

    /// The Sentinels name the present master.
    func tellSentinels() {
        guard let master = groups.first?.master else { return }
        for (place, sentinel) in sentinels.enumerated() where place != cutOffSentinel {
            sentinel.server.sentinelNames(Self.masterName, at: Self.host, port: master.options.port)
        }
    }

    /// One command of the world's own, such as a gateway's, at the server that has the key.
    @discardableResult
    func command(_ words: [String]) -> [UInt8] {
        guard words.count > 1, let cluster else {
            return groups.first.flatMap { seat(of: $0.master)?.command(words) } ?? []
        }
        guard let owner = cluster.owner(of: ClusterModel.slot(of: words[1])), let own = seat(of: owner) else {
            return []
        }
        let reply = own.command(words)
        // -ASK SLOT ADDRESS: the key has moved before its slot.
        let text = String(decoding: reply.prefix(64), as: UTF8.self)
        guard text.hasPrefix("-ASK"), let address = text.split(whereSeparator: \.isWhitespace).last else {
            return reply
        }
        return seats.first { $0.address == address }?.command(words, isAsking: true) ?? []
    }

    /// The data of each master.
    var snapshots: [Snapshot] { groups.map(\.master.snapshot) }
}
