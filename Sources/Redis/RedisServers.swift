// SPDX-License-Identifier: Apache-2.0
/// The Redis of a worker or a command: one server, possibly named by Sentinels, or a cluster.
///
/// The calls are those of `RedisClient`. The choice between the two costs one comparison per command.
public enum RedisServers {
    case single(RedisClient)
    case cluster(RedisClusterClient)

    /// Receives all replies; see `RedisClient.delegate`.
    public var delegate: (any RedisClientDelegate)? {
        get {
            switch self {
            case .single(let client): client.delegate
            case .cluster(let client): client.delegate
            }
        }
        nonmutating set {
            switch self {
            case .single(let client): client.delegate = newValue
            case .cluster(let client): client.delegate = newValue
            }
        }
    }

    public func start() {
        switch self {
        case .single(let client): client.start()
        case .cluster(let client): client.start()
        }
    }

    public func close() {
        switch self {
        case .single(let client): client.close()
        case .cluster(let client): client.close()
        }
    }

    public var isCluster: Bool { if case .cluster = self { true } else { false } }

    /// Commands are accepted, in a cluster those of some slots.
    @inlinable public var isReady: Bool {
        switch self {
        case .single(let client): client.isReady
        case .cluster(let client): client.isReady
        }
    }

    /// Every key can be reached.
    public var isWhole: Bool {
        switch self {
        case .single(let client): client.isReady
        case .cluster(let client): client.isWhole
        }
    }

    /// Commands without a reply; in a cluster, those of the least busy node.
    @inlinable public var pipelineDepth: Int {
        switch self {
        case .single(let client): client.pipelineDepth
        case .cluster(let client): client.pipelineDepth
        }
    }

    /// Rises when a server, or a node, is a new process.
    public var serverGeneration: UInt32 {
        switch self {
        case .single(let client): client.serverGeneration
        case .cluster(let client): client.serverGeneration
        }
    }

    /// Rises when keys served by one process belong to another; data that was not replicated is lost.
    public var handovers: UInt32 {
        switch self {
        case .single(let client): max(1, client.serverGeneration) - 1
        case .cluster(let client): client.handovers
        }
    }

    /// The process that serves a key. A different number invalidates earlier cursors.
    public func generation(ofKey key: @autoclosure () -> String) -> UInt32 {
        switch self {
        case .single(let client): client.serverGeneration
        case .cluster(let client): client.generation(ofKey: key())
        }
    }

    /// Identifies the process that is now the master of a user's keys (`RedisServerFacts.reign`); nil if unknown.
    ///
    /// - Parameter tag: the two parts of the keys' hash tag, `{app:uid}`.
    @inlinable public func reign(ofTag tag: (app: String, uid: String)) -> Int64? {
        switch self {
        case .single(let client): client.reign
        case .cluster(let client): client.reign(ofTag: tag)
        }
    }

    public func operation(_ name: String) -> RedisOperation {
        switch self {
        case .single(let client): client.operation(name)
        case .cluster(let client): client.operation(name)
        }
    }

    // MARK: Commands

    /// - Parameter order: `.fixed` if a cluster client must not resend it.
    @inlinable public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, order: RedisOrder = .free,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        switch self {
        case .single(let client): try client.command(tag, operation, build)
        case .cluster(let client): try client.command(tag, operation, order: order, build)
        }
    }

    /// A command without a key in its arguments, for the server that has this key.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, toNodeOf key: String, order: RedisOrder = .fixed,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        switch self {
        case .single(let client): try client.command(tag, operation, build)
        case .cluster(let client): try client.command(tag, operation, toNodeOf: key, order: order, build)
        }
    }

    @inlinable public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        switch self {
        case .single(let client): try client.command(tag, operation, prepared)
        case .cluster(let client): try client.command(tag, operation, prepared)
        }
    }

    @inlinable public func prepare(_ build: (inout RedisCommand) -> Void) -> PreparedCommand {
        switch self {
        case .single(let client): client.prepare(build)
        case .cluster(let client): client.prepare(build)
        }
    }

    @inlinable public func evaluate(
        _ tag: UInt64, _ operation: RedisOperation, _ script: RedisScript, keyCount: Int,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        switch self {
        case .single(let client):
            try client.evaluate(tag, operation, script, keyCount: keyCount, build)
        case .cluster(let client):
            try client.evaluate(tag, operation, script, keyCount: keyCount, build)
        }
    }

    /// The number of keys: an integer; for a cluster the form of `RedisClusterClient.keyCount`.
    public func keyCount(_ tag: UInt64, _ operation: RedisOperation) throws(RedisFault) {
        switch self {
        case .single(let client): try client.command(tag, operation) { $0.arg(word: "DBSIZE") }
        case .cluster(let client): try client.keyCount(tag)
        }
    }

    // MARK: Figures for the operator

    /// Servers that are not ready, each with its address and reason; empty if all are ready.
    public var faults: [RedisPlaceFault] {
        switch self {
        case .single(let client):
            client.isReady ? [] : [RedisPlaceFault(place: client.endpoint.description, fault: client.lastFault)]
        case .cluster(let client): client.faults
        }
    }

    /// The same in words, a cluster's nodes by name; nil if all are ready, or before the first attempt.
    public var faultText: String? {
        if case .single(let client) = self { return client.lastFault?.publicText }
        let faults = faults
        return faults.isEmpty ? nil : faults.map(\.description).joined(separator: ", ")
    }

    /// Each server to be connected to: in a cluster every master, and without a map the nodes that are tried.
    public var places: [RedisPlace] {
        switch self {
        case .single(let client): [RedisPlace(client)]
        case .cluster(let client): client.places
        }
    }

    /// Each connected server with its reported properties.
    public var servers: [(place: String, facts: RedisServerFacts)] {
        switch self {
        case .single(let client): [(client.endpoint.description, client.server)]
        case .cluster(let client): client.masters.map { ($0.client.endpoint.description, $0.client.server) }
        }
    }

    // MARK: Tags

    /// For each server with keys, the lowest number that makes `<word><number>` a hash tag of a slot that it serves.
    ///
    /// Clients with the same map of the cluster's slots find the same numbers. A cluster's master with very few slots may have
    /// none.
    public func tagNumbers(_ word: String) -> [Int] {
        switch self {
        case .single: [0]
        case .cluster(let client): client.tagNumbers(word)
        }
    }
}

/// A server for an operator's view.
public struct RedisPlace: Sendable, Equatable {
    public var place: String
    /// For a cluster node: the label `node` of its metrics.
    public var node: String?
    public var isReady: Bool
    /// Commands that wait for its reply.
    public var waiting: Int
    /// The reason why it is not ready; nil if it is, or before the first attempt.
    public var why: String?

    public init(place: String, node: String? = nil, isReady: Bool, waiting: Int = 0, why: String? = nil) {
        self.place = place
        self.node = node
        self.isReady = isReady
        self.waiting = waiting
        self.why = why
    }

    init(_ client: RedisClient, node: NodeAddress? = nil) {
        self.init(
            place: client.endpoint.description, node: node?.description, isReady: client.isReady,
            waiting: client.pipelineDepth,
            why: client.isReady ? nil : client.lastFault?.publicText)
    }
}

/// A server that is unusable at present.
public struct RedisPlaceFault: Sendable, CustomStringConvertible {
    public let place: String
    /// Nil before the first attempt.
    public let fault: RedisFault?

    init(place: String, fault: RedisFault?) {
        self.place = place
        self.fault = fault
    }

    public var description: String { "\(place): \(fault?.publicText ?? "connecting")" }
}

extension RedisClusterClient {
    /// Numbers that are tried: a master with 16 of the 16 384 slots is found in 98 of 100 cases.
    private static let tagsMax = 4096

    func tagNumbers(_ word: String) -> [Int] {
        var open = Set(masters.map(\.address))
        var numbers: [Int] = []
        for number in 0..<Self.tagsMax {
            if open.isEmpty { break }
            let slot = Int(KeySlot.of("\(word)\(number)"))
            guard owners.indices.contains(slot), let node = owners[slot], open.remove(node.address) != nil else {
                continue
            }
            numbers.append(number)
        }
        return numbers
    }
}
