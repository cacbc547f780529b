// SPDX-License-Identifier: Apache-2.0
public import EventLoop
public import Redis

/// A connection to Carillon's state for commands and pages: questions, each awaited. The lowest layer of `Explain`:
/// the types that read or change one part of the state hold it.
///
/// An actor on its own loop, which owns the client and its store. The client's limits bound it: an answer or a fault
/// comes within `RedisLimits.commandTimeoutNanos`. End it with `close()`.
public actor StateReader {
    private nonisolated let loop: Loop
    private let topology: RedisTopology
    private let limits: RedisLimits
    private let replies = StateReplies()
    private var client: RedisServers?
    private var store: StateStore?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a reader that `open()` connects.
    public init(_ topology: RedisTopology, limits: RedisLimits = RedisLimits()) throws(LoopFault) {
        self.topology = topology
        self.limits = limits
        loop = try Loop(name: "state-reader")
        loop.start()
    }

    /// Connects and logs in, to every master of a cluster. Throws the first failure, without retries.
    public func open() async throws(RedisFault) {
        guard client == nil else { return }
        let made: RedisServers
        do throws(TLSFault) {
            made = try RedisServers(loop: loop, topology, limits: limits)
        } catch {
            throw RedisFault(.unreachable, error.description)
        }
        client = made
        made.delegate = replies
        let fault: RedisFault? = await withCheckedContinuation { continuation in
            replies.whenConnected(to: made) { continuation.resume(returning: $0) }
            made.start()
        }
        if let fault {
            // After a failed open the caller may release it on any thread, but the loop's objects must be released on
            // the loop.
            closeClient()
            throw fault
        }
        store = StateStore(made)
    }

    /// The servers' reported properties, each with its address; in a cluster those of its masters. Empty before
    /// `open()`.
    public var servers: [(place: String, facts: RedisServerFacts)] { client?.servers ?? [] }

    /// Closes the connection and ends the thread. Must not be called on its own loop.
    public nonisolated func close() async {
        await closeClient()
        loop.stop()
    }

    private func closeClient() {
        client?.close()
        client = nil
        store = nil
    }

    // MARK: - Asking

    /// Sends `count` commands and gives each reply with its index to `read`, which changes the value.
    func ask<Value: Sendable>(
        _ count: Int, into value: Value, _ send: (StateStore, [UInt64]) throws(RedisFault) -> Void,
        _ read: @escaping (inout Value, Int, borrowing RedisReply) -> Void
    ) async throws(RedisFault) -> Value {
        guard let store else { throw RedisFault(.notConnected, "the state reader is not open") }
        var value = value
        let query = StateQuery(count: count) { read(&value, $0, $1) }
        let tags = replies.admit(query)
        do throws(RedisFault) {
            try send(store, tags)
        } catch {
            replies.forget(tags)
            throw error
        }
        let fault: RedisFault? = await withCheckedContinuation { continuation in
            query.whenDone = { continuation.resume(returning: $0) }
        }
        if let fault { throw fault }
        return value
    }

    /// One command with one reply.
    func ask<Value: Sendable>(
        _ send: (StateStore, UInt64) throws(RedisFault) -> Void, _ read: @escaping (borrowing RedisReply) -> Value
    ) async throws(RedisFault) -> Value {
        let value: Value? = try await ask(
            1, into: nil, { (store, tags) throws(RedisFault) in try send(store, tags[0]) }, { $0 = read($2) })
        guard let value else { throw RedisFault(.protocolViolation, "no reply") }
        return value
    }

    // MARK: - The server

    /// Reads a lease that does not exist; in a cluster, from one node.
    public func ping() async throws(RedisFault) {
        _ = try await ask({ (store, tag) throws(RedisFault) in try store.lease("-", tag: tag) }, { $0.isNull })
    }

    /// Workers that stopped because Redis lost its tokens continue without them.
    public func acceptLoss() async throws(RedisFault) {
        let nowMs = Loop.wallMs()
        _ = try await ask(
            { (store, tag) throws(RedisFault) in try store.acceptLoss(nowMs: nowMs, tag: tag) }, { $0.isNull })
    }
}

/// One query with the replies that it waits for.
private final class StateQuery {
    private let read: (Int, borrowing RedisReply) -> Void
    private var left: Int
    private var fault: RedisFault?
    var whenDone: ((RedisFault?) -> Void)?
    let count: Int

    init(count: Int, read: @escaping (Int, borrowing RedisReply) -> Void) {
        self.count = count
        self.read = read
        left = count
    }

    func take(_ place: Int, _ reply: borrowing RedisReply) {
        read(place, reply)
        step()
    }

    func fail(_ fault: RedisFault) {
        if self.fault == nil { self.fault = fault }
        step()
    }

    private func step() {
        left -= 1
        if left == 0 { whenDone?(fault) }
    }
}

/// The client's delegate: replies by tag. On the reader's loop only.
private final class StateReplies: RedisClientDelegate {
    private var onConnected: ((RedisFault?) -> Void)?
    private var client: RedisServers?
    private var waiting: [UInt64: (query: StateQuery, place: Int)] = [:]
    private var nextTag: UInt64 = 1

    func whenConnected(to client: RedisServers, _ body: @escaping (RedisFault?) -> Void) {
        self.client = client
        onConnected = body
    }

    func admit(_ query: StateQuery) -> [UInt64] {
        (0..<query.count).map { place in
            defer { nextTag &+= 1 }
            waiting[nextTag] = (query, place)
            return nextTag
        }
    }

    func forget(_ tags: [UInt64]) {
        for tag in tags { waiting[tag] = nil }
    }

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {
        guard let entry = waiting.removeValue(forKey: tag) else { return }
        entry.query.take(entry.place, reply)
    }

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {
        waiting.removeValue(forKey: tag)?.query.fail(fault)
    }

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        let fault: RedisFault?
        switch state {
        case .ready:
            // In a cluster nodes become ready one after another.
            guard self.client?.isWhole ?? false else { return }
            fault = nil
        case .waiting(let why): fault = why
        case .closed: fault = RedisFault(.notConnected, "closed")
        case .idle, .connecting: return
        }
        let body = onConnected.take()
        self.client = nil
        body?(fault)
    }
}
