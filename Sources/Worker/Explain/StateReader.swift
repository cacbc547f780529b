public import EventLoop
public import Redis

/// Carillon's state for commands: reads, each of them awaited, and the few changes that an operator orders.
///
/// An actor on a loop of its own, which owns the client and its store. Bounded by the client's own limits: an answer
/// comes, or a fault within `RedisLimits.commandTimeoutNanos`. End it with `close()`.
public actor StateReader {
    private nonisolated let loop: Loop
    private let topology: RedisTopology
    private let limits: RedisLimits
    private let replies = StateReplies()
    private var client: RedisServers?
    private var store: StateStore?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// One that `open()` connects.
    public init(_ topology: RedisTopology, limits: RedisLimits = RedisLimits()) throws(LoopFault) {
        self.topology = topology
        self.limits = limits
        loop = try Loop(name: "state-reader")
        loop.start()
    }

    /// Connects and logs in, to every master of a cluster; the first failure is thrown, nothing is tried again.
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
            // Whoever opened it in vain may let go of it anywhere, but what belongs to the loop may go on the loop only.
            closeClient()
            throw fault
        }
        store = StateStore(made)
    }

    /// What the servers told of themselves, each with its place; of a cluster its masters. Empty before `open()`.
    public var servers: [(place: String, facts: RedisServerFacts)] { client?.servers ?? [] }

    /// Closes the connection and ends the thread. Not to be called on its own loop.
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

    /// Sends commands under `count` tags and hands each reply with its place to `read`.
    func ask(
        _ count: Int, _ send: (StateStore, [UInt64]) throws(RedisFault) -> Void,
        _ read: @escaping (Int, borrowing RedisReply) -> Void
    ) async throws(RedisFault) {
        guard let store else { throw RedisFault(.notConnected, "the state reader is not open") }
        let query = StateQuery(count: count, read: read)
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
    }

    /// One command with one reply.
    func ask<Value>(
        _ send: (StateStore, UInt64) throws(RedisFault) -> Void, _ read: @escaping (borrowing RedisReply) -> Value
    ) async throws(RedisFault) -> Value {
        var value: Value?
        try await ask(1, { (store, tags) throws(RedisFault) in try store.send(tags, send) }) { value = read($1) }
        guard let value else { throw RedisFault(.protocolViolation, "no reply") }
        return value
    }
}

extension StateStore {
    fileprivate func send(
        _ tags: [UInt64], _ send: (StateStore, UInt64) throws(RedisFault) -> Void
    ) throws(RedisFault) {
        for tag in tags { try send(self, tag) }
    }
}

/// One question with the replies that it waits for.
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
            // Of a cluster, one node after another.
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
