public import EventLoop
public import Telemetry

/// Where a worker's Redis is.
public enum RedisTopology: Sendable, Equatable {
    /// One server with all keys.
    case single(RedisEndpoint)
    /// Nodes of a cluster; they tell of the others.
    case cluster([RedisEndpoint])
    /// The master that Sentinels name.
    case sentinel(RedisSentinels)

    /// The server, or the first that is named.
    public var first: RedisEndpoint? {
        switch self {
        case .single(let endpoint): endpoint
        case .cluster(let nodes): nodes.first
        case .sentinel(let sentinels): sentinels.nodes.first
        }
    }

    /// Whether a server that others name may be reached at this place: what is configured to stay on this machine in clear
    /// text does not leave it by another's word.
    static func allows(_ address: NodeAddress, namedBy nodes: [RedisEndpoint]) -> Bool {
        address.isLoopback || nodes.contains { $0.usesTLS || !($0.nodeAddress?.isLoopback ?? true) }
    }

    /// How servers are logged in at.
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

/// Sentinels, the name by which they know a master, and how to log in at that one.
public struct RedisSentinels: Sendable, Equatable {
    public var masterName: String
    /// By TCP, each with the Sentinels' own login.
    public var nodes: [RedisEndpoint]
    /// Login, TLS and database of the master; its address is what the Sentinels say.
    public var master: RedisEndpoint

    public init(masterName: String, nodes: [RedisEndpoint], master: RedisEndpoint) {
        self.masterName = masterName
        self.nodes = nodes
        self.master = master
    }
}

extension RedisServers {
    /// A client that `start()` connects. Throws when TLS is wanted and its authorities cannot be read.
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
