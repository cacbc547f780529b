// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import Telemetry

/// The owner of a client. Its own queries bypass the delegate.
protocol RedisInquirer: AnyObject {
    func didAnswer(_ id: UInt64, _ reply: borrowing RedisReply)
    func didFail(_ id: UInt64, _ fault: RedisFault)
}

/// One pipelined connection to a Redis server, kept alive permanently, with all queues bounded.
///
/// Bound to its loop's thread. Commands of one turn are sent in one write. Replies go to the delegate by tag, in the
/// order of the commands (a script that Redis had forgotten moves to the end). Without a connection commands fail at
/// once, and the caller decides about waiting. A lost connection is replaced after a jittered pause.
public final class RedisClient {
    /// The state of the connection.
    public enum State: Sendable, Equatable {
        /// Created, not started. Goes to `connecting`.
        case idle
        /// TCP, TLS and the greeting are in progress. Goes to `ready`, `waiting` or `closed`.
        case connecting
        /// Logged in: commands are accepted. Goes to `waiting` or `closed`.
        case ready
        /// Lost or refused for this reason. Goes to `connecting` after a pause by itself, or to `closed`.
        case waiting(RedisFault)
        /// The end: closed by its owner.
        case closed
    }

    /// Receives all replies; not retained. It must live as long as the client, or be removed before it is released. Set
    /// it before `start()`.
    ///
    /// Not weak, because an object with weak references has slower reference counting.
    public unowned var delegate: (any RedisClientDelegate)?

    /// The server's address; with Sentinels, the master's address as last reported.
    public private(set) var endpoint: RedisEndpoint
    public let limits: RedisLimits
    public private(set) var state = State.idle
    /// The reason why the last connection ended or failed; nil once one is ready.
    public private(set) var lastFault: RedisFault?
    /// Rises with each connection that became ready; 0 before the first.
    public private(set) var connectionCount: UInt32 = 0
    /// Rises when a connection became ready to a new server process; 0 before the first.
    ///
    /// A scan's cursor is valid within one process only. If the server does not report its `run_id` (a user without
    /// INFO), each connection counts as a new process. Up to date when `didChange` reports `.ready`.
    public private(set) var serverGeneration: UInt32 = 0
    /// Properties that the server reported at the last greeting.
    public private(set) var server = RedisServerFacts()
    /// `RedisServerFacts.reign` of that server.
    public private(set) var reign: Int64?

    private let loop: Loop
    private var log: ConnectionLog
    private let tls: RedisTLS?
    private let metrics: RedisMetrics
    /// The expected role of the server.
    private let role: RedisRole
    /// For a cluster node: resends commands that the node did not execute; it owns this client.
    unowned var node: RedisNode?
    /// Receives the answers of `inquire`; it owns this client.
    unowned var inquirer: (any RedisInquirer)?
    /// Reports the master's address; nil for a fixed endpoint.
    private var watch: SentinelWatch?
    private var connection: RedisConnection?
    private let backoff: Backoff
    private var random: SmallRandom
    /// Consecutive failed connects, for the next pause.
    private var failures = 0
    private var retryTimer: LoopTimer?
    var builder: RedisCommand?
    var scripts = ScriptTable()

    /// Creates a client that `start()` connects. Throws if the endpoint requires TLS and its authorities cannot be
    /// read.
    public convenience init(
        loop: Loop, endpoint: RedisEndpoint, limits: RedisLimits = RedisLimits(), log: Log = .off,
        metrics: MetricsRegistry? = nil
    ) throws(TLSFault) {
        self.init(
            loop: loop, endpoint: endpoint, limits: limits, log: log, metrics: RedisMetrics(metrics), role: .single,
            tls: try endpoint.tls())
    }

    /// A client of the master named by Sentinels. It follows their answers, and closes its connection when they name
    /// another master.
    convenience init(
        loop: Loop, sentinels: RedisSentinels, limits: RedisLimits, log: Log, metrics: MetricsRegistry?
    ) throws(TLSFault) {
        self.init(
            loop: loop, endpoint: sentinels.master, limits: limits, log: log, metrics: RedisMetrics(metrics),
            role: .single, tls: try sentinels.master.tls())
        watch = try SentinelWatch(
            loop: loop, sentinels, limits: limits, log: log, found: { [unowned self] in masterIs(at: $0) },
            lost: { [unowned self] in noMaster($0) })
    }

    init(
        loop: Loop, endpoint: RedisEndpoint, limits: RedisLimits, log: Log, metrics: RedisMetrics, role: RedisRole,
        tls: RedisTLS?
    ) {
        loop.assertOnLoop()
        self.loop = loop
        self.endpoint = endpoint
        self.limits = limits
        self.log = ConnectionLog(log)
        self.metrics = metrics
        self.role = role
        self.tls = tls
        random = SmallRandom(seed: loop.makeSeed())
        let baseNanos = max(limits.backoffMinNanos, 1)
        backoff = Backoff(baseNanos: baseNanos, capNanos: max(limits.backoffMaxNanos, baseNanos))
    }

    // MARK: Life

    /// Connects. `didChange` reports the rest. A second call does nothing.
    public func start() {
        loop.assertOnLoop()
        guard case .idle = state else { return }
        retryTimer = LoopTimer(loop: loop) { [unowned self] in connect() }
        guard let watch else { return connect() }
        change(to: .connecting)
        watch.start()
    }

    /// Closes the connection permanently. Waiting tags fail with `.connectionLost` before this returns.
    public func close() {
        loop.assertOnLoop()
        guard state != .closed else { return }
        state = .closed
        retryTimer = nil
        watch?.close()
        connection?.end(RedisFault(.connectionLost(wasSent: true), "the client was closed"))
        delegate?.redis(self, didChange: state)
    }

    /// Whether commands are accepted.
    public var isReady: Bool { connection?.isReady ?? false }

    /// Commands without a reply yet.
    public var pipelineDepth: Int { connection?.pipeline.count ?? 0 }

    /// Registers a name for a kind of command in the metrics. Ask once and keep it. At most 255 names.
    public func operation(_ name: String) -> RedisOperation { metrics.operation(name) }

    // MARK: Commands

    /// Sends the command built by `build`. The delegate is called once for `tag`.
    ///
    /// Throws `.notConnected` or `.overloaded` before anything is written; the delegate is not called then. Tags are
    /// the caller's own and need not be unique. Allocates nothing once its buffers have grown.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        let connection = try admit()
        var command = takeBuilder()
        build(&command)
        let count = command.finish()
        precondition(count > 0, "RedisClient: a command without arguments")
        connection.send(command, .command, operation.index, tag, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
    }

    /// Builds a command to be sent later.
    public func prepare(_ build: (inout RedisCommand) -> Void) -> PreparedCommand {
        var command = takeBuilder()
        build(&command)
        let prepared = PreparedCommand(&command)
        builder = consume command
        return prepared
    }

    /// Runs a script: `build` adds its `keyCount` keys, and then its other arguments.
    ///
    /// The first call on a connection carries the source, later ones its digest. If Redis has forgotten the script
    /// (NOSCRIPT), the source is sent again for the same tag. Throws like `command`.
    public func evaluate(
        _ tag: UInt64, _ operation: RedisOperation, _ script: RedisScript, keyCount: Int,
        _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        let connection = try admit()
        let index = scripts.index(of: script)
        let isLoaded = index < ScriptTable.max && connection.loadedScripts & (1 << UInt64(index)) != 0
        var command = takeBuilder()
        command.arg(isLoaded ? "EVALSHA" : "EVAL")
        command.arg(isLoaded ? script.digest : script.source)
        let keptFrom = command.encodedCount
        command.arg(keyCount)
        build(&command)
        _ = command.finish()
        let timeout = limits.commandTimeoutNanos
        if isLoaded {
            connection.sendScript(
                command, index: index, keptFrom: keptFrom, operation.index, tag, timeoutNanos: timeout)
        } else {
            if index < ScriptTable.max { connection.markLoaded(index) }
            connection.send(command, .command, operation.index, tag, timeoutNanos: timeout)
        }
        builder = consume command
    }

    /// Like the other `evaluate`, for callers with keys and arguments in arrays.
    public func evaluate(
        _ tag: UInt64, _ operation: RedisOperation, _ script: RedisScript, keys: [[UInt8]], args: [[UInt8]]
    ) throws(RedisFault) {
        try evaluate(tag, operation, script, keyCount: keys.count) { command in
            for key in keys { command.arg(key) }
            for arg in args { command.arg(arg) }
        }
    }

    func admit() throws(RedisFault) -> RedisConnection {
        loop.assertOnLoop()
        guard let connection, connection.isReady else {
            metrics.count(.notConnected)
            throw RedisFault(.notConnected)
        }
        // The connection's own checks come on top of the limit.
        guard connection.pipeline.count < limits.pipelineMax &+ limits.pipelineMax / RedisConnection.checkEvery,
            connection.link.pendingOutputBytes < limits.outputBytesMax
        else {
            metrics.count(.overloaded)
            throw RedisFault(.overloaded)
        }
        return connection
    }

    /// Removed while in use, so that a `build` that sends a command itself gets another one.
    func takeBuilder() -> RedisCommand {
        var command = builder.take() ?? RedisCommand()
        command.reset()
        return command
    }

    // MARK: Events of the Sentinels

    private func masterIs(at address: NodeAddress) {
        guard state != .closed else { return }
        endpoint = endpoint.at(address)
        failures = 0
        if let connection {
            // Its open commands fail as lost: they may have run there, and may be lost with it.
            connection.end(RedisFault(.connectionLost(wasSent: true), "the Sentinels name another master"))
        }
        retryTimer?.cancel()
        connect()
    }

    /// The connection ends: its server may be an old master that is cut off from the others.
    private func noMaster(_ fault: RedisFault) {
        guard state != .closed else { return }
        connection?.end(fault)
        guard state != .closed else { return }
        retryTimer?.cancel()
        lastFault = fault
        change(to: .waiting(fault))
    }

    // MARK: Events of the connection

    private func connect() {
        guard state != .closed, connection == nil, watch == nil || watch?.master != nil else { return }
        let place: Endpoint =
            switch endpoint.address {
            case .tcp(let host, let port): .tcp(host: host, port: port)
            case .unix(let path): .unix(path: path)
            }
        let link = Link(loop: loop, to: place, tls: tls?.context, connectTimeoutNanos: limits.connectTimeoutNanos)
        link.clockStage = .redis
        do throws(RedisFault) {
            let next = try RedisConnection(
                client: self, loop: loop, link: link, role: role, replyBytesMax: limits.replyBytesMax)
            connection = next
            change(to: .connecting)
            next.open()
        } catch {
            retryLater(error)
        }
    }

    /// Login, database, the server's properties, and a script that shows whether it executes our calls.
    func greet(_ connection: RedisConnection) {
        var command = takeBuilder()
        if let password = endpoint.currentPassword {
            command.arg(word: "AUTH")
            if let user = endpoint.user { command.arg(user) }
            password.withBytes { command.arg($0) }
            connection.send(
                command, .handshake, 0, Greeting.Step.login.rawValue, timeoutNanos: limits.connectTimeoutNanos)
            // Wipes the password from the storage that later commands reuse.
            command.wipe()
        }
        for (step, words) in Greeting.commands(endpoint, role) {
            for word in words { command.arg(word) }
            connection.send(command, .handshake, 0, step.rawValue, timeoutNanos: limits.connectTimeoutNanos)
            command.reset()
        }
        builder = consume command
    }

    func becameReady(_ connection: RedisConnection) {
        metrics.connects.add()
        connectionCount &+= 1
        let facts = connection.greeting.facts
        if facts.runID == nil || facts.runID != server.runID { serverGeneration &+= 1 }
        server = facts
        reign = facts.reign
        lastFault = nil
        log.ready(endpoint, facts, nowNanos: loop.nowNanos)
        change(to: .ready)
    }

    func observe(_ entry: Pipeline.Entry, nowNanos: UInt64) {
        metrics.observe(entry.operation, nanos: nowNanos &- entry.sentNanos)
    }

    func observe(depth: Int) { metrics.depth.set(depth) }

    func failed(_ tag: UInt64, _ fault: RedisFault) {
        metrics.count(fault.code)
        delegate?.redis(self, didFail: tag, fault: fault)
    }

    /// Resends a script call of the same connection with its source; false for a script outside the table.
    func sendFull(
        script index: Int, arguments: UnsafeRawBufferPointer, count: Int, of entry: Pipeline.Entry,
        on connection: RedisConnection
    ) -> Bool {
        guard let script = scripts[index] else { return false }
        if node != nil {
            guard let (head, arguments) = RedisConnection.unpack(arguments) else { return false }
            let call = NodeCall(
                head: head, tag: entry.tag, operation: entry.operation, script: script, argumentCount: count)
            write(call, arguments, isFull: true, on: connection)
            return true
        }
        var command = takeBuilder()
        command.arg(word: "EVAL")
        command.arg(script.source)
        command.append(encoded: arguments, arguments: count)
        connection.send(command, .command, entry.operation, entry.tag, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
        return true
    }

    func ended(_ lost: RedisConnection, _ fault: RedisFault) {
        guard lost === connection else { return }
        connection = nil
        metrics.depth.set(0)
        // The replica was healthy enough to read from, so the next attempt need not wait.
        let wasWell = fault.code == .readOnly || loop.nowNanos &- lost.readyNanos >= limits.backoffMaxNanos
        if lost.isReady, wasWell { failures = 0 }
        let isClosed = state == .closed
        if !isClosed { state = .waiting(fault) }
        // Reported one by one: each call may send, and learns that there is no connection, or may close.
        var isFirst = true
        while let (entry, fault) = lost.takeLost(fault, isFirst: isFirst) {
            isFirst = false
            if entry.purpose == .inquiry {
                inquirer?.didFail(entry.tag, fault)
            } else {
                failed(entry.tag, fault)
            }
        }
        if !isClosed { retryLater(fault) }
    }

    private func retryLater(_ fault: RedisFault) {
        guard state != .closed else { return }
        watch?.askNow()
        metrics.count(fault.code)
        lastFault = fault
        failures += 1
        let wait = backoff.delayNanos(failures: failures, random: &random)
        retryTimer?.arm(afterNanos: wait)
        log.lost(endpoint, fault, waitNanos: wait, nowNanos: loop.nowNanos)
        change(to: .waiting(fault))
    }

    private func change(to next: State) {
        state = next
        delegate?.redis(self, didChange: next)
    }

    // MARK: Node
    // For a node of a cluster, and for the client's owner.

    /// Sends a command of a cluster client and keeps it until the reply.
    ///
    /// - Parameter asking: sent after an ASKING, and a script with its source, because a refused command would return
    ///   without one.
    func send(_ call: NodeCall, _ encoded: UnsafeRawBufferPointer, asking: Bool) throws(RedisFault) {
        let connection = try admit()
        if asking {
            var command = takeBuilder()
            command.arg(word: "ASKING")
            _ = command.finish()
            connection.send(command, .asking, 0, 0, timeoutNanos: limits.commandTimeoutNanos)
            builder = consume command
        }
        write(call, encoded, isFull: asking, on: connection)
    }

    func write(
        _ call: NodeCall, _ encoded: UnsafeRawBufferPointer, isFull: Bool, on connection: RedisConnection
    ) {
        var command = takeBuilder()
        var purpose = Pipeline.Purpose.command
        if let script = call.script {
            let index = scripts.index(of: script)
            let isKnown = index < ScriptTable.max
            let isLoaded = isKnown && !isFull && connection.loadedScripts & (1 << UInt64(index)) != 0
            command.arg(word: isLoaded ? "EVALSHA" : "EVAL")
            command.arg(isLoaded ? script.digest : script.source)
            if isKnown, !isFull { connection.markLoaded(index) }
            purpose = .script(index: UInt8(truncatingIfNeeded: index))
        }
        command.append(encoded: encoded, arguments: call.argumentCount)
        _ = command.finish()
        connection.send(
            command, keeping: encoded, call, purpose, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
    }

    /// The script of an index from this client's table.
    func script(_ index: Int) -> RedisScript? { scripts[index] }

    /// Sends a query of the client's owner. `inquirer` receives the answer.
    func inquire(_ id: UInt64, _ build: (inout RedisCommand) -> Void) throws(RedisFault) {
        let connection = try admit()
        var command = takeBuilder()
        build(&command)
        _ = command.finish()
        connection.send(command, .inquiry, 0, id, timeoutNanos: limits.commandTimeoutNanos)
        builder = consume command
    }
}
