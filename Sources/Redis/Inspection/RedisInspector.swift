// SPDX-License-Identifier: Apache-2.0
public import EventLoop
internal import Telemetry

/// Queries one server after another, each by its own link: no retries, and only the greeting and the given queries are
/// sent. For `check`.
///
/// An actor on its own loop. A query ends within twice `RedisLimits.connectTimeoutNanos` plus `commandTimeoutNanos`.
/// End it with `close()`.
public actor RedisInspector {
    private nonisolated let loop: Loop
    private let limits: RedisLimits

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    public init(limits: RedisLimits = RedisLimits()) throws(LoopFault) {
        self.limits = limits
        loop = try Loop(name: "redis-inspector")
        loop.start()
    }

    /// Must not be called on its own loop.
    public nonisolated func close() { loop.stop() }

    /// Connects, logs in and asks.
    ///
    /// - Parameter questions: commands with their arguments.
    public func inspect(at endpoint: RedisEndpoint, as role: RedisRole, asking questions: [[String]] = []) async
        -> RedisLook
    {
        let tls: RedisTLS?
        do throws(TLSFault) {
            tls = try endpoint.tls()
        } catch {
            return RedisLook(endpoint: endpoint, fault: RedisFault(.unreachable, error.description))
        }
        let client = RedisClient(
            loop: loop, endpoint: endpoint, limits: limits, log: .off, metrics: RedisMetrics(nil), role: role, tls: tls)
        let visit = RedisVisit(client, questions)
        let look = await withCheckedContinuation { continuation in
            visit.begin { continuation.resume(returning: $0) }
        }
        visit.end()
        return look
    }
}

/// One server's answers.
public struct RedisLook: Sendable {
    public var endpoint: RedisEndpoint
    /// Nil if it is unusable.
    public var facts: RedisServerFacts?
    /// The reason why it is unusable, or why a query has no answer; nil if all were answered.
    public var fault: RedisFault?
    /// In the order of the queries, up to the first failure.
    public var answers: [RedisAnswer] = []
    /// Time from the first query to its answer.
    public var micros: UInt64 = 0

    public var place: String { endpoint.description }
}

/// One link, from its start to the last answer. On the inspector's loop only.
private final class RedisVisit: RedisClientDelegate, RedisInquirer {
    private let client: RedisClient
    private let questions: [[String]]
    private var look: RedisLook
    private var askedNanos: UInt64 = 0
    private var whenDone: ((RedisLook) -> Void)?

    init(_ client: RedisClient, _ questions: [[String]]) {
        self.client = client
        self.questions = questions
        look = RedisLook(endpoint: client.endpoint)
        client.delegate = self
        client.inquirer = self
    }

    func begin(_ done: @escaping (RedisLook) -> Void) {
        whenDone = done
        client.start()
    }

    func end() {
        whenDone = nil
        client.close()
    }

    /// One query after another, so that each answer belongs to its own.
    private func ask() {
        guard look.answers.count < questions.count else { return finish(nil) }
        if look.answers.isEmpty { askedNanos = Loop.monotonicNanos() }
        do throws(RedisFault) {
            try client.inquire(UInt64(look.answers.count)) { command in
                for word in questions[look.answers.count] { command.arg(word) }
            }
        } catch {
            finish(error)
        }
    }

    private func finish(_ fault: RedisFault?) {
        look.fault = fault
        whenDone.take()?(look)
    }

    // MARK: Events of the client

    func didAnswer(_ id: UInt64, _ reply: borrowing RedisReply) {
        if id == 0 { look.micros = (Loop.monotonicNanos() &- askedNanos) / 1000 }
        look.answers.append(RedisAnswer(reply))
        ask()
    }

    func didFail(_ id: UInt64, _ fault: RedisFault) { finish(fault) }

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {}

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {}

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        guard whenDone != nil else { return }
        switch state {
        case .ready:
            look.facts = client.server
            ask()
        case .waiting(let fault): finish(fault)
        case .closed: finish(RedisFault(.notConnected, "closed"))
        case .idle, .connecting: break
        }
    }
}
