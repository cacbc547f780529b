// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import Telemetry

/// A Redis Cluster as one client: each command uses the link of the node that serves its key's slot.
///
/// Bound to its loop's thread. Replies go to the delegate by tag. Those of one slot come in the order of execution,
/// those of different slots in any order. A node that is down fails only its own slots' commands. Commands that a node
/// does not execute because of the cluster's state (MOVED, ASK, TRYAGAIN, CLUSTERDOWN, …) are resent here
/// (`RedirectRule`) within the command timeout; a command of order `.fixed` fails instead.
public final class RedisClusterClient {
    /// Receives all replies; not retained, like `RedisClient.delegate`. Its client argument is that of the node that
    /// answered.
    public unowned var delegate: (any RedisClientDelegate)?

    public let limits: RedisLimits
    let loop: Loop
    let log: Log
    let seeds: [RedisEndpoint]
    /// Login and TLS settings of every node.
    private let template: RedisEndpoint
    private let tls: TLSClientContext?
    private let registry: MetricsRegistry?
    private let totals: RedisMetrics
    private var metrics: [NodeAddress: RedisMetrics] = [:]
    /// Every node with a link: masters, and without a map every possible source of one.
    var nodes: [NodeAddress: RedisNode] = [:]
    /// The owner of each slot; nil if unknown.
    var owners = [RedisNode?](repeating: nil, count: KeySlot.count)
    /// Rises for a slot when a new process serves it; 0 before the first change.
    var generations = [UInt32](repeating: 0, count: KeySlot.count)
    private(set) var lastGeneration: UInt32 = 0
    var held = HeldSlots()
    var topology = Topology()
    var lines = LogLimiter<Line>()
    private var sequence: UInt64 = 0
    private var builder: RedisCommand?
    var heldTimer: LoopTimer?
    var watchTimer: LoopTimer?
    private(set) var isClosed = false
    var counting = KeyCounting()

    /// Log lines that would repeat during an outage.
    enum Line: Hashable { case map, noMap }

    static let metricNodesMax = 256

    /// Creates a client that `start()` connects. Throws if the endpoints require TLS and its authorities cannot be
    /// read.
    ///
    /// - Parameter seeds: TCP nodes that can report the others. Login and TLS settings of the first apply to all nodes.
    public init(
        loop: Loop, seeds: [RedisEndpoint], limits: RedisLimits = RedisLimits(), log: Log = .off,
        metrics: MetricsRegistry? = nil
    ) throws(TLSFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.seeds = seeds
        self.limits = limits
        self.log = log
        registry = metrics
        totals = RedisMetrics(nil)
        template = seeds.first ?? RedisEndpoint(.tcp(host: "localhost", port: 6379))
        tls = try template.tlsContext()
    }

    // MARK: Life

    /// Connects. `didChange` reports each node that becomes ready. A second call does nothing.
    public func start() {
        loop.assertOnLoop()
        guard heldTimer == nil, !isClosed else { return }
        heldTimer = LoopTimer(loop: loop) { [unowned self] in releaseHeld() }
        watchTimer = LoopTimer(loop: loop) { [unowned self] in watch() }
        openSeeds()
        watchTimer?.arm(afterNanos: Topology.watchNanos)
    }

    /// Closes all links permanently. Waiting tags fail with `.connectionLost` before this returns.
    public func close() {
        loop.assertOnLoop()
        guard !isClosed else { return }
        isClosed = true
        heldTimer = nil
        watchTimer = nil
        for slot in held.slots {
            for command in held.release(slot) {
                delegate?.redis(
                    anyClient(), didFail: command.call.tag, fault: RedisFault(.notConnected, "the client was closed"))
            }
        }
        for node in nodesInOrder { node.client.close() }
        owners = []
        nodes = [:]
    }

    /// By address, so that the same work closes links in the same order.
    var nodesInOrder: [RedisNode] {
        nodes.values.sorted { $0.address.description < $1.address.description }
    }

    /// A master is ready: commands of its slots are accepted.
    public var isReady: Bool { nodes.values.contains { $0.isInMap && $0.client.isReady } }

    /// Open commands of the least busy master, so that a slow node does not delay the slots of others.
    public var pipelineDepth: Int {
        var least: Int?
        for node in nodes.values where node.isInMap && node.client.isReady {
            least = min(least ?? .max, node.client.pipelineDepth)
        }
        return least ?? 0
    }

    /// Registers a name for a kind of command in the metrics. Ask once and keep it. At most 255 names.
    public func operation(_ name: String) -> RedisOperation {
        let operation = totals.operation(name)
        for metrics in metrics.values { _ = metrics.operation(name) }
        return operation
    }

    /// The process that serves a key, as a number that is never reused; 0 if there is none.
    ///
    /// It changes when the slot moves, and when its node is a new process.
    public func generation(ofKey key: String) -> UInt32 {
        let slot = Int(KeySlot.of(key))
        return slot < generations.count ? generations[slot] : 0
    }

    /// `RedisClient.reign` of the node with the keys of `{app:uid}`; nil if there is none, or if it does not report
    /// one.
    public func reign(ofTag tag: (app: String, uid: String)) -> Int64? {
        let slot = Int(KeySlot.of(tag: tag.app, tag.uid))
        return owners.indices.contains(slot) ? owners[slot]?.client.reign : nil
    }

    /// Rises when a node is a new process.
    public internal(set) var serverGeneration: UInt32 = 0

    /// Rises when keys served by one process move to another.
    public internal(set) var handovers: UInt32 = 0

    func nextGeneration() -> UInt32 {
        lastGeneration &+= 1
        return lastGeneration
    }

    // MARK: Commands

    /// Sends the command built by `build` to the node of its first key, which is the argument after its name. Like
    /// `RedisClient.command`.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, order: RedisOrder = .free,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        var command = takeBuilder()
        build(&command)
        _ = command.finish()
        let slot = command.withArgument(1) { KeySlot.of($0) }
        try submit(tag, operation, order, nil, slot, &command)
        builder = consume command
    }

    /// Sends a command to the node of a key that is not among its arguments.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, toNodeOf key: String, order: RedisOrder,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        var command = takeBuilder()
        build(&command)
        _ = command.finish()
        try submit(tag, operation, order, nil, KeySlot.of(key), &command)
        builder = consume command
    }

    /// Runs a script on the node of its first key. Like `RedisClient.evaluate`.
    public func evaluate(
        _ tag: UInt64, _ operation: RedisOperation, _ script: RedisScript, keyCount: Int,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        var command = takeBuilder()
        command.arg(keyCount)
        build(&command)
        _ = command.finish()
        let slot = command.withArgument(1) { KeySlot.of($0) }
        try submit(tag, operation, .free, script, slot, &command)
        builder = consume command
    }

    /// Like the other `command`.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        try command(tag, operation) { prepared.append(to: &$0) }
    }

    /// Builds a command to be sent later.
    public func prepare(_ build: (inout RedisCommand) -> Void) -> PreparedCommand {
        var command = takeBuilder()
        build(&command)
        let prepared = PreparedCommand(&command)
        builder = consume command
        return prepared
    }

    private func submit(
        _ tag: UInt64, _ operation: RedisOperation, _ order: RedisOrder, _ script: RedisScript?, _ slot: UInt16?,
        _ command: inout RedisCommand
    ) throws(RedisFault) {
        loop.assertOnLoop()
        precondition(slot != nil || isClosed, "RedisClusterClient: a command without a key")
        guard let slot, !isClosed, let node = owners[Int(slot)] else {
            totals.count(.notConnected)
            renewMap()
            throw RedisFault(.notConnected, "no node of the cluster is known to serve the slot")
        }
        sequence &+= 1
        let call = NodeCall(
            head: CommandHead(slot: slot, order: order, sequence: sequence, startNanos: loop.nowNanos), tag: tag,
            operation: operation.index, script: script, argumentCount: command.count)
        if !held.isEmpty, held.holds(slot) { return try wait(call, command) }
        // The closure cannot throw a typed error.
        var fault: RedisFault?
        command.withArguments(from: 0) { encoded in
            do throws(RedisFault) { try node.send(call, encoded) } catch { fault = error }
        }
        if let fault { throw fault }
    }

    /// The slot is held: the command waits after the earlier ones.
    private func wait(_ call: NodeCall, _ command: borrowing RedisCommand) throws(RedisFault) {
        guard held.count < limits.pipelineMax, held.byteCount < limits.outputBytesMax else {
            totals.count(.overloaded)
            throw RedisFault(.overloaded)
        }
        held.append(KeptCommand(call: call, encoded: command.withArguments(from: 0) { [UInt8]($0) }))
    }

    /// Removed while in use, so that a `build` that sends a command itself gets another one.
    private func takeBuilder() -> RedisCommand {
        var command = builder.take() ?? RedisCommand()
        command.reset()
        return command
    }

    // MARK: Links

    /// Links to the configured nodes, while no map names others.
    func openSeeds() {
        for seed in seeds { if let address = seed.nodeAddress { _ = node(at: address) } }
    }

    /// The link to a node; created and started if missing.
    func node(at address: NodeAddress) -> RedisNode {
        if let known = nodes[address] { return known }
        let metrics = metrics(of: address)
        let client = RedisClient(
            loop: loop, endpoint: template.at(address), limits: limits, log: log, metrics: metrics, role: .node,
            tls: tls)
        let node = RedisNode(address, client, metrics, cluster: self)
        nodes[address] = node
        client.start()
        return node
    }

    /// One set of metrics per node, kept when its link closes.
    private func metrics(of address: NodeAddress) -> RedisMetrics {
        if let known = metrics[address] { return known }
        let isNamed = metrics.count < Self.metricNodesMax
        let made = RedisMetrics(isNamed ? registry : nil, node: address.description)
        for name in totals.operations { _ = made.operation(name) }
        if isNamed { metrics[address] = made }
        return made
    }

    /// Closes a link without open commands.
    func drop(_ node: RedisNode) {
        nodes[node.address] = nil
        // Its owner goes with this call's end.
        withExtendedLifetime(node) { node.client.close() }
    }

    /// A client for a delegate call that concerns no node.
    func anyClient() -> RedisClient {
        if let node = nodes.values.first { return node.client }
        return RedisClient(
            loop: loop, endpoint: template, limits: limits, log: .off, metrics: totals, role: .node, tls: tls)
    }
}
