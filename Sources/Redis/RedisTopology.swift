// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import Telemetry

/// The address of a worker's Redis.
public enum RedisTopology: Sendable, Equatable {
    /// One server with all keys.
    case single(RedisEndpoint)
    /// Nodes of a cluster, which report the others.
    case cluster([RedisEndpoint])
    /// The master named by Sentinels.
    case sentinel(RedisSentinels)

    /// The server, or the first one named.
    public var first: RedisEndpoint? {
        switch self {
        case .single(let endpoint): endpoint
        case .cluster(let nodes): nodes.first
        case .sentinel(let sentinels): sentinels.nodes.first
        }
    }

    /// - Returns: whether a server named by others may be reached at this address: a configuration that stays on this
    ///   machine in clear text must not leave it because of another server's answer.
    static func allows(_ address: NodeAddress, namedBy nodes: [RedisEndpoint]) -> Bool {
        address.isLoopback || nodes.contains { $0.usesTLS || !($0.nodeAddress?.isLoopback ?? true) }
    }

    /// The login of the servers.
    public var server: RedisEndpoint? {
        if case .sentinel(let sentinels) = self { sentinels.master } else { first }
    }

    /// Every server that is named.
    public var endpoints: [RedisEndpoint] {
        switch self {
        case .single(let endpoint): [endpoint]
        case .cluster(let nodes): nodes
        case .sentinel(let sentinels): sentinels.nodes
        }
    }
}

/// Sentinels, their name for the master, and the master's login.
public struct RedisSentinels: Sendable, Equatable {
    public var masterName: String
    /// TCP addresses, each with the Sentinels' own login.
    public var nodes: [RedisEndpoint]
    /// Login, TLS and database of the master. Its address comes from the Sentinels.
    public var master: RedisEndpoint

    public init(masterName: String, nodes: [RedisEndpoint], master: RedisEndpoint) {
        self.masterName = masterName
        self.nodes = nodes
        self.master = master
    }
}

extension RedisServers {
    /// Creates a client that `start()` connects. Throws if TLS is required and its authorities cannot be read.
    public init(
        loop: Loop, _ topology: RedisTopology, limits: RedisLimits = RedisLimits(), log: Log = .off,
        metrics: MetricsRegistry? = nil
    ) throws(TLSFault) {
        switch topology {
        case .single(let endpoint):
            self = .single(
                try RedisClient(loop: loop, endpoint: endpoint, limits: limits, log: log, metrics: metrics))
        case .cluster(let nodes):
            self = .cluster(
                try RedisClusterClient(loop: loop, seeds: nodes, limits: limits, log: log, metrics: metrics))
        case .sentinel(let sentinels):
            self = .single(
                try RedisClient(loop: loop, sentinels: sentinels, limits: limits, log: log, metrics: metrics))
        }
    }
}
