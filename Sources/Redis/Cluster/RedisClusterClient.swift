public import EventLoop
public import Telemetry

/// A Redis Cluster as one client: each command goes over the link of the node that serves its key's slot.
///
/// Bound to its loop's thread. Replies come to the delegate by tag, those of one slot in the order in which they ran; those of
/// two slots in any order. A node that is away fails its own slots' commands only. What a node does not carry out for what the
/// cluster is going through (MOVED, ASK, TRYAGAIN, CLUSTERDOWN, …) is sent again here (`RedirectRule`), for as long as a
/// command's time; a command of order `.fixed` is told instead.
public final class RedisClusterClient {
    /// Hears all replies; not held, as `RedisClient.delegate`. The client it is given is that of the node that answered.
    public unowned var delegate: (any RedisClientDelegate)?

    public let limits: RedisLimits
    let loop: Loop
    let log: Log
    let seeds: [RedisEndpoint]
    /// Login and TLS of every node.
    private let template: RedisEndpoint
    private let tls: TLSClientContext?
    private let registry: MetricsRegistry?
    private let totals: RedisMetrics
    private var metrics: [NodeAddress: RedisMetrics] = [:]
    /// Every node with a link: masters, and until there is a map whoever can tell one.
    var nodes: [NodeAddress: RedisNode] = [:]
    /// Who serves a slot; nil: nobody is known to.
    var owners = [RedisNode?](repeating: nil, count: KeySlot.count)
    /// Rises for a slot when another process serves it than before; 0: none has.
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

    /// Lines of the log that a cluster in trouble would repeat.
    enum Line: Hashable { case map, noMap }

    static let metricNodesMax = 256

    /// A client that `start()` connects. Throws when the endpoints want TLS and its authorities cannot be read.
    ///
    /// - Parameter seeds: nodes that can tell of the others, by TCP; the first one's login and TLS count for all nodes.
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

    /// Connects; `didChange` tells of each node that becomes ready. A second call does nothing.
    public func start() {
        loop.assertOnLoop()
        guard heldTimer == nil, !isClosed else { return }
        heldTimer = LoopTimer(loop: loop) { [unowned self] in releaseHeld() }
        watchTimer = LoopTimer(loop: loop) { [unowned self] in watch() }
        openSeeds()
        watchTimer?.arm(afterNanos: Topology.watchNanos)
    }

    /// Ends all links for good; waiting tags fail with `.connectionLost` before this returns.
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
        for node in nodes.values { node.client.close() }
        owners = []
        nodes = [:]
    }

    /// Some master is ready: its slots' commands are taken.
    public var isReady: Bool { nodes.values.contains { $0.isInMap && $0.client.isReady } }

    /// Commands that the least busy master has not answered: a slow node does not hold up the slots of the others.
    public var pipelineDepth: Int {
        var least: Int?
        for node in nodes.values where node.isInMap && node.client.isReady {
            least = min(least ?? .max, node.client.pipelineDepth)
        }
        return least ?? 0
    }

    /// A name for a kind of command in the metrics; ask once and keep it. At most 255 names.
    public func operation(_ name: String) -> RedisOperation {
        let operation = totals.operation(name)
        for metrics in metrics.values { _ = metrics.operation(name) }
        return operation
    }

    /// Which process serves a key, as a number that is never given to another one; 0: none does.
    ///
    /// It changes when the slot moves, and when the node that serves it is another process than before.
    public func generation(ofKey key: String) -> UInt32 {
        let slot = Int(KeySlot.of(key))
        return slot < generations.count ? generations[slot] : 0
    }

    /// `RedisClient.reign` of the node that has the keys of `{app:uid}`; nil: none has, or it does not tell.
    public func reign(ofTag tag: (app: String, uid: String)) -> Int64? {
        let slot = Int(KeySlot.of(tag: tag.app, tag.uid))
        return owners.indices.contains(slot) ? owners[slot]?.client.reign : nil
    }

    /// Rises when a node is another process than before.
    public internal(set) var serverGeneration: UInt32 = 0

    /// Rises when keys that a process has served go to another one.
    public internal(set) var handovers: UInt32 = 0

    func nextGeneration() -> UInt32 {
        lastGeneration &+= 1
        return lastGeneration
    }

    // MARK: Commands

    /// Sends the command that `build` puts together to the node of its first key, which is the argument behind its name.
    /// As `RedisClient.command`.
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

    /// Sends a command to the node that serves a key which is not among its arguments.
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

    /// Runs a script on the node of its first key. As `RedisClient.evaluate`.
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

    /// As the other `command`.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        try command(tag, operation) { prepared.append(to: &$0) }
    }

    /// The command that `build` puts together, to be sent later.
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
        // The closure cannot tell a typed error.
        var fault: RedisFault?
        command.withArguments(from: 0) { encoded in
            do throws(RedisFault) { try node.send(call, encoded) } catch { fault = error }
        }
        if let fault { throw fault }
    }

    /// The slot is held: the command waits behind the earlier ones.
    private func wait(_ call: NodeCall, _ command: borrowing RedisCommand) throws(RedisFault) {
        guard held.count < limits.pipelineMax, held.byteCount < limits.outputBytesMax else {
            totals.count(.overloaded)
            throw RedisFault(.overloaded)
        }
        held.append(KeptCommand(call: call, encoded: command.withArguments(from: 0) { [UInt8]($0) }))
    }

    /// Taken out while it is in use, so that a `build` that sends a command itself gets another one.
    private func takeBuilder() -> RedisCommand {
        var command = builder.take() ?? RedisCommand()
        command.reset()
        return command
    }

    // MARK: Links

    /// Links to the nodes that the configuration names, while no map tells others.
    func openSeeds() {
        for seed in seeds { if let address = seed.nodeAddress { _ = node(at: address) } }
    }

    /// The link to a node; made and started where there is none.
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

    /// One set of numbers per node, also when its link comes and goes.
    private func metrics(of address: NodeAddress) -> RedisMetrics {
        if let known = metrics[address] { return known }
        let isNamed = metrics.count < Self.metricNodesMax
        let made = RedisMetrics(isNamed ? registry : nil, node: address.description)
        for name in totals.operations { _ = made.operation(name) }
        if isNamed { metrics[address] = made }
        return made
    }

    /// Lets go of a link that nothing is due from.
    func drop(_ node: RedisNode) {
        nodes[node.address] = nil
        // Its owner goes with this call's end.
        withExtendedLifetime(node) { node.client.close() }
    }

    /// A client for a delegate's call that is about no node.
    func anyClient() -> RedisClient {
        if let node = nodes.values.first { return node.client }
        return RedisClient(
            loop: loop, endpoint: template, limits: limits, log: .off, metrics: totals, role: .node, tls: tls)
    }
}
