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
    private let tls: RedisTLS?
    private let registry: MetricsRegistry?
    private let totals: RedisMetrics
    private var metrics: [NodeAddress: RedisMetrics] = [:]
    /// Every node with a link: masters, and without a map every possible source of one.
    var nodes: [NodeAddress: RedisNode] = [:]
    /// The owner of each slot; nil if unknown.
    var owners = [RedisNode?](repeating: nil, count: KeySlot.count)
    /// Rises for a slot when a new process serves it; 0 before the first change.
    private var generations = [UInt32](repeating: 0, count: KeySlot.count)
    private(set) var lastGeneration: UInt32 = 0
    var held = HeldSlots()
    var topology = Topology()
    var lines = LogLimiter<Line>()
    private var sequence: UInt64 = 0
    private var builder: RedisCommand?
    private var heldTimer: LoopTimer?
    private var watchTimer: LoopTimer?
    private(set) var isClosed = false
    var counting = KeyCounting()

    /// Log lines that would repeat during an outage.
    enum Line: Hashable { case map, noMap }

    private static let metricNodesMax = 256

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
        tls = try template.tls()
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
    private var nodesInOrder: [RedisNode] {
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

    private func nextGeneration() -> UInt32 {
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
    private func openSeeds() {
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
    private func anyClient() -> RedisClient {
        if let node = nodes.values.first { return node.client }
        return RedisClient(
            loop: loop, endpoint: template, limits: limits, log: .off, metrics: totals, role: .node, tls: tls)
    }

    // MARK: Keys

    /// The number of keys of each master (DBSIZE): an array of pairs, the node's number and its keys, null if it is
    /// down.
    ///
    /// Throws `.notConnected` if no master can be asked.
    public func keyCount(_ tag: UInt64) throws(RedisFault) {
        loop.assertOnLoop()
        let id = counting.begin(tag)
        var isAsked = false
        for node in masters {
            var isAway = true
            do throws(RedisFault) {
                try node.client.inquire(id) { $0.arg(word: "DBSIZE") }
                isAway = false
                isAsked = true
            } catch {}
            counting.ask(id, node.id, isAway: isAway)
        }
        if isAsked { return }
        counting.forget(id)
        throw RedisFault(.notConnected, "no master of the cluster can be asked")
    }

    func didCount(_ id: UInt64, _ node: RedisNode, _ keys: Int64?) {
        guard let count = counting.take(id, node.id, keys) else { return }
        let client = node.client
        guard count.keys.values.contains(where: { $0 != nil }) else {
            delegate?.redis(client, didFail: count.tag, fault: RedisFault(.notConnected, "no master answered"))
            return
        }
        ReplyArena.withPairs(count.keys) { delegate?.redis(client, didReply: count.tag, reply: $0) }
        delegate?.redisDidDeliverReplies(client)
    }

    // MARK: Redirects
    // Commands that nodes did not execute, and commands that wait for the cluster to agree.

    private static let lookNanos: UInt64 = 10_000_000

    func take(_ command: KeptCommand, turnedAwayBy node: RedisNode, _ fault: RedisFault, _ redirect: Redirect?) {
        if RedirectRule.asksForMap(fault.code) { renewMap() }
        // No server can make this client open unlimited links. The map reports new nodes in time.
        let isKnown = redirect.map { nodes[$0.address] != nil } ?? false
        let mayFollow = redirect.map { RedisTopology.allows($0.address, namedBy: seeds) } ?? false
        let redirect = isKnown || (mayFollow && nodes.count < SlotMap.mastersMax) ? redirect : nil
        if let redirect, redirect.kind == .moved, redirect.slot == command.head.slot {
            give([redirect.slot], to: self.node(at: redirect.address))
        }
        let step = RedirectRule.step(
            fault.code, redirect, command.head, nowNanos: loop.nowNanos, limitNanos: limits.commandTimeoutNanos)
        var next = command
        next.call.head.tries = min(next.call.head.tries, .max - 1) + 1
        switch step {
        case .fail: tell(command, fault)
        case .wait(let nanos): hold(next, nanos, fault)
        case .send(let address, let asking): send(next, to: self.node(at: address), asking: asking, fault)
        }
    }

    private func send(_ command: KeptCommand, to node: RedisNode, asking: Bool, _ fault: RedisFault) {
        // Earlier commands of the slot wait, or the previous node has open ones: keep the order.
        if held.holds(command.head.slot) { return hold(command, 0, fault) }
        guard node.client.isReady else { return hold(command, Self.lookNanos, fault) }
        let isSent = command.encoded.withUnsafeBytes { bytes in
            do throws(RedisFault) {
                try node.send(command.call, bytes, asking: asking)
                return true
            } catch {
                return false
            }
        }
        if !isSent { hold(command, Self.lookNanos, fault) }
    }

    private func hold(_ command: KeptCommand, _ nanos: UInt64, _ fault: RedisFault) {
        held.hold(command, untilNanos: loop.nowNanos &+ nanos, because: fault)
        armHeldTimer()
    }

    private func armHeldTimer() {
        if let heldTimer, !heldTimer.isArmed { heldTimer.arm(afterNanos: Self.lookNanos) }
    }

    private func tell(_ command: KeptCommand, _ fault: RedisFault) {
        delegate?.redis(anyClient(), didFail: command.call.tag, fault: fault)
    }

    /// Sends commands with an expired delay to the present owner of their slot. Commands that waited too long fail.
    private func releaseHeld() {
        let now = loop.nowNanos
        let since = now &- min(now, limits.commandTimeoutNanos)
        for (command, fault) in held.takeExpired(startedBefore: since) { tell(command, fault) }
        for slot in held.due(nowNanos: now) where !isClosed { release(slot, now) }
        if !isClosed, !held.isEmpty { armHeldTimer() }
    }

    private func release(_ slot: UInt16, _ now: UInt64) {
        guard let owner = owners[Int(slot)], owner.client.isReady else {
            return held.putOff(slot, untilNanos: now &+ Self.lookNanos)
        }
        for command in held.release(slot) {
            send(command, to: owner, asking: false, RedisFault(.moved))
        }
    }

    /// All commands sent to the node before its slots moved are answered.
    func unfence(_ node: RedisNode) {
        let slots = node.takeUnfenced()
        if slots.isEmpty { return }
        for slot in slots { held.unfence(slot) }
        if !isClosed { releaseHeld() }
    }

    // MARK: Topology
    // Maintains the slot map and the links to its nodes.

    /// Ready nodes serve all slots.
    public var isWhole: Bool {
        guard let map = topology.map, map.servedCount == KeySlot.count else { return false }
        return nodes.values.allSatisfy { !$0.isInMap || $0.client.isReady }
    }

    /// Masters in the map.
    var masters: [RedisNode] { (topology.map?.masters ?? []).compactMap { nodes[$0] } }

    // MARK: Asking

    /// Asks a node for the map, now or after a pause.
    private func renewMap() {
        guard !isClosed else { return }
        if topology.asked != nil {
            topology.isWantedAgain = true
            return
        }
        guard loop.nowNanos &- topology.askedNanos >= Topology.pauseNanos || topology.askedNanos == 0 else {
            topology.isWantedAgain = true
            return
        }
        let ready = nodes.values.filter { $0.client.isReady }.sorted { $0.address.description < $1.address.description }
        guard !ready.isEmpty else { return openSeeds() }
        topology.turn &+= 1
        let node = ready[topology.turn % ready.count]
        do throws(RedisFault) {
            try node.client.inquire(Topology.inquiry) { command in
                command.arg(word: "CLUSTER")
                command.arg(word: "SLOTS")
            }
        } catch {
            topology.isWantedAgain = true
            return
        }
        topology.asked = node.address
        topology.askedNanos = loop.nowNanos
        topology.isWantedAgain = false
    }

    /// Checks that the map is known and complete and its nodes are connected. If not, asks for it again.
    func watch() {
        watchTimer?.arm(afterNanos: Topology.watchNanos)
        dropIdle()
        let isOld = loop.nowNanos &- topology.askedNanos >= Topology.calmNanos
        if topology.isWantedAgain || isOld || !isWhole { renewMap() }
    }

    // MARK: Answers

    func node(_ node: RedisNode, didAnswer id: UInt64, _ reply: borrowing RedisReply) {
        guard id == Topology.inquiry else { return didCount(id, node, reply.int64) }
        topology.asked = nil
        guard let map = SlotMap(reply, asker: node.address.host) else {
            topology.fault = RedisFault(.protocolViolation, "\(node.address) gives no valid map of the slots")
            topology.isWantedAgain = true
            return
        }
        if let far = map.masters.first(where: { !RedisTopology.allows($0, namedBy: seeds) }) {
            topology.fault = RedisFault(
                .unsupported, "a master is at \(far), and tokens would travel there in clear: use rediss://")
            if topology.map == nil {
                delegate?.redis(node.client, didChange: .waiting(topology.fault ?? RedisFault(.moved)))
            }
            return
        }
        topology.fault = nil
        apply(map)
    }

    func node(_ node: RedisNode, didFail id: UInt64, _ fault: RedisFault) {
        guard id == Topology.inquiry else { return didCount(id, node, nil) }
        topology.asked = nil
        topology.isWantedAgain = true
        topology.fault =
            fault.code == .noPermission
            ? RedisFault(.noPermission, "the user may not ask for the map of the slots: grant it CLUSTER SLOTS") : fault
        if let why = topology.fault, let untold = lines.admit(.noMap, nowNanos: loop.nowNanos) {
            log.warning(
                "a node of the cluster gives no map of the slots",
                [
                    "redis": .string(node.address.description), "why": .string(why.publicText),
                    "suppressed": .int(Int(clamping: untold)),
                ])
        }
        if topology.map == nil { delegate?.redis(node.client, didChange: .waiting(topology.fault ?? fault)) }
    }

    func node(_ node: RedisNode, didChange state: RedisClient.State) {
        if isClosed { return }
        switch state {
        case .ready:
            if topology.map == nil { renewMap() }
            guard node.isInMap else { return }
            noteProcess(of: node)
            delegate?.redis(node.client, didChange: .ready)
            if !held.isEmpty { releaseHeld() }
        case .waiting:
            if topology.asked == node.address { topology.asked = nil }
            renewMap()
            let isHopeless = topology.map == nil && nodes.values.allSatisfy { $0.client.lastFault != nil }
            if node.isInMap || isHopeless { delegate?.redis(node.client, didChange: state) }
        case .idle, .connecting, .closed: break
        }
    }

    /// The node may be a new process. Work begun in the previous process cannot be continued.
    private func noteProcess(of node: RedisNode) {
        guard node.seenGeneration != node.client.serverGeneration else { return }
        if node.seenGeneration != 0 { handovers &+= 1 }
        node.seenGeneration = node.client.serverGeneration
        serverGeneration &+= 1
        let generation = nextGeneration()
        for slot in owners.indices where owners[slot] === node { generations[slot] = generation }
    }

    // MARK: The map

    private func apply(_ map: SlotMap) {
        let isNew = map != topology.map
        topology.map = map
        let masters = Set(map.masters)
        for node in nodes.values { node.isInMap = masters.contains(node.address) }
        // No node serves the slots between the ranges, so their commands continue to wait.
        var next = 0
        for range in map.ranges {
            for slot in next..<Int(range.slots.lowerBound) { owners[slot] = nil }
            next = Int(range.slots.upperBound) + 1
            let node = node(at: range.master)
            node.isInMap = true
            give(range.slots.filter { owners[Int($0)] !== node }, to: node)
        }
        for slot in next..<owners.count { owners[slot] = nil }
        guard isNew else { return }
        if let untold = lines.admit(.map, nowNanos: loop.nowNanos) {
            log.info(
                "the map of the cluster's slots changed",
                [
                    "masters": .string(map.masters.map(\.description).joined(separator: " ")),
                    "slots": .int(map.servedCount), "suppressed": .int(Int(clamping: untold)),
                ])
        }
        // Links that were made before the map named them.
        for node in self.masters where node.client.isReady { self.node(node, didChange: .ready) }
    }

    /// These slots belong to that node from now on. Open commands at the previous node hold them back, so that commands
    /// run and are reported in order.
    func give(_ slots: [UInt16], to node: RedisNode) {
        node.isInMap = true
        var left: [ObjectIdentifier: (node: RedisNode, slots: [UInt16])] = [:]
        var moved = false
        var wereServed = false
        for slot in slots where owners[Int(slot)] !== node {
            moved = true
            wereServed = wereServed || generations[Int(slot)] != 0
            if let before = owners[Int(slot)], before.isBusy {
                left[ObjectIdentifier(before), default: (before, [])].slots.append(slot)
            }
            owners[Int(slot)] = node
        }
        guard moved else { return }
        if wereServed { handovers &+= 1 }
        let generation = nextGeneration()
        for slot in slots { generations[Int(slot)] = generation }
        let byAddress = left.values.sorted { $0.node.address.description < $1.node.address.description }
        for (before, slots) in byAddress {
            for slot in slots { held.fence(slot) }
            before.fence(slots)
        }
        if !held.isEmpty { armHeldTimer() }
    }

    /// Closes links to nodes without slots when all their commands are answered. Possible sources of a map remain until
    /// there is one.
    private func dropIdle() {
        guard topology.map != nil, isReady else { return }
        for node in nodesInOrder where !node.isInMap && !node.isBusy && topology.asked != node.address { drop(node) }
    }

    // MARK: Topology

    /// Masters that are not ready, and unserved slots; without a map the reason for that.
    var faults: [RedisPlaceFault] {
        let noMap = topology.fault.map { RedisPlaceFault(place: "the cluster's map", fault: $0) }
        guard let map = topology.map else {
            let away = nodes.values.filter { !$0.client.isReady }.map { Self.fault(of: $0) }
            return (away + [noMap].compactMap { $0 }).sorted { $0.place < $1.place }
        }
        var faults = nodes.values.filter { $0.isInMap && !$0.client.isReady }.map { Self.fault(of: $0) }
        faults.sort { $0.place < $1.place }
        if map.servedCount < KeySlot.count {
            faults.append(
                RedisPlaceFault(
                    place: "the cluster",
                    fault: RedisFault(
                        .clusterDown, "\(map.servedCount) of \(KeySlot.count) slots are served by any node")))
        }
        return faults
    }

    /// Masters by address; without a map all nodes that are tried.
    var places: [RedisPlace] {
        let shown = topology.map == nil ? Array(nodes.values) : nodes.values.filter(\.isInMap)
        return shown.map { RedisPlace($0.client, node: $0.address) }.sorted { $0.place < $1.place }
    }

    private static func fault(of node: RedisNode) -> RedisPlaceFault {
        RedisPlaceFault(place: node.client.endpoint.description, fault: node.client.lastFault)
    }
}

/// Queries to every master with one combined answer.
struct KeyCounting {
    struct Count {
        let tag: UInt64
        var awaiting = 0
        /// By node (`RedisNode.id`); nil if it is down.
        var keys: [Int64: Int64?] = [:]
    }

    private var open: [UInt64: Count] = [:]
    /// 0 is the query for the map.
    private var lastID: UInt64 = 0

    mutating func begin(_ tag: UInt64) -> UInt64 {
        lastID &+= 1
        open[lastID] = Count(tag: tag)
        return lastID
    }

    mutating func ask(_ id: UInt64, _ node: Int64, isAway: Bool) {
        open[id]?.keys.updateValue(nil, forKey: node)
        if !isAway { open[id]?.awaiting += 1 }
    }

    /// Adds one node's answer; nil for none. Returns the whole count once it is complete.
    mutating func take(_ id: UInt64, _ node: Int64, _ keys: Int64?) -> Count? {
        guard var count = open[id] else { return nil }
        count.awaiting -= 1
        count.keys.updateValue(keys, forKey: node)
        open[id] = count.awaiting > 0 ? count : nil
        return count.awaiting > 0 ? nil : count
    }

    mutating func forget(_ id: UInt64) { open[id] = nil }
}

extension ReplyArena {
    /// A reply built by this client: an array of pairs of numbers; null for nil.
    fileprivate static func withPairs(_ pairs: [Int64: Int64?], _ body: (borrowing RedisReply) -> Void) {
        var arena = ReplyArena(bytesMax: 1 << 20)
        let array = arena.add(Node(kind: .array), under: nil)
        for (name, value) in pairs.sorted(by: { $0.key < $1.key }) {
            _ = arena.add(Node(kind: .integer, value: name), under: array)
            _ = arena.add(value.map { Node(kind: .integer, value: $0) } ?? Node(kind: .null), under: array)
        }
        withUnsafePointer(to: arena) { body(RedisReply($0, 0)) }
    }
}
