// SPDX-License-Identifier: Apache-2.0
internal import EventLoop
internal import Telemetry

/// Asks Sentinels for the master: one after another until one answers, then that one once a second, and at once when
/// the link to the master is lost or turns out to be a replica.
///
/// Bound to its loop's thread. The master's client owns it.
final class SentinelWatch: RedisClientDelegate, RedisInquirer {
    /// The master's address from the last answer; nil before the first.
    private(set) var master: NodeAddress?
    /// The reason why none answers.
    private(set) var fault: RedisFault?

    private let sentinels: RedisSentinels
    private let loop: Loop
    private let limits: RedisLimits
    private let log: Log
    private let metrics = RedisMetrics(nil)
    private let tls: TLSClientContext?
    /// Receives the master's address from each answer that names one.
    private let found: (NodeAddress) -> Void
    /// None of them answered, for this reason.
    private let lost: (RedisFault) -> Void
    private var client: RedisClient?
    private var place = 0
    /// Consecutive Sentinels without an answer.
    private var misses = 0
    private var timer: LoopTimer?
    private var isAsking = false
    private var isClosed = false

    private static let lookNanos: UInt64 = 1_000_000_000
    private static let quickNanos: UInt64 = 100_000_000
    private static let inquiry: UInt64 = 1

    init(
        loop: Loop, _ sentinels: RedisSentinels, limits: RedisLimits, log: Log,
        found: @escaping (NodeAddress) -> Void, lost: @escaping (RedisFault) -> Void
    ) throws(TLSFault) {
        self.loop = loop
        self.sentinels = sentinels
        self.limits = limits
        self.log = log
        self.found = found
        self.lost = lost
        tls = try sentinels.nodes.first?.tlsContext()
    }

    func start() {
        timer = LoopTimer(loop: loop) { [unowned self] in look() }
        connect()
    }

    func close() {
        isClosed = true
        timer = nil
        client?.close()
        client = nil
    }

    /// The master is in doubt: the next query is immediate.
    func askNow() {
        guard !isClosed, !isAsking else { return }
        if client?.isReady ?? false { ask() }
    }

    private func connect() {
        guard !isClosed, !sentinels.nodes.isEmpty else { return }
        let endpoint = sentinels.nodes[place % sentinels.nodes.count]
        let next = RedisClient(
            loop: loop, endpoint: endpoint, limits: limits, log: .off, metrics: metrics, role: .sentinel,
            tls: endpoint.usesTLS ? tls : nil)
        next.delegate = self
        next.inquirer = self
        client = next
        next.start()
    }

    private func look() {
        timer?.arm(afterNanos: Self.lookNanos)
        if client == nil { connect() } else if !isAsking { ask() }
    }

    private func ask() {
        guard let client, client.isReady else { return }
        do throws(RedisFault) {
            try client.inquire(Self.inquiry) { command in
                command.arg(word: "SENTINEL")
                command.arg(word: "GET-MASTER-ADDR-BY-NAME")
                command.arg(sentinels.masterName)
            }
            isAsking = true
        } catch {
            missed(error)
        }
    }

    /// This one did not answer: asks the next one, with a pause after a full round.
    private func missed(_ fault: RedisFault) {
        guard !isClosed, let gone = client else { return }
        isAsking = false
        client = nil
        // This may be its own call, so it is released after the call returns.
        loop.atEndOfTurn { gone.close() }
        gone.delegate = nil
        gone.inquirer = nil
        place = (place + 1) % max(1, sentinels.nodes.count)
        misses += 1
        self.fault = RedisFault(fault.code, "Sentinel \(gone.endpoint): \(fault.publicText)")
        if misses >= sentinels.nodes.count {
            lost(RedisFault(fault.code, "no Sentinel knows a master \(sentinels.masterName): \(fault.publicText)"))
            timer?.arm(afterNanos: Self.lookNanos)
        } else {
            timer?.arm(afterNanos: Self.quickNanos)
        }
    }

    // MARK: Events of the client

    func didAnswer(_ id: UInt64, _ reply: borrowing RedisReply) {
        isAsking = false
        guard let client, let asked = client.endpoint.nodeAddress else { return }
        guard reply.count == 2, reply[0].kind == .string,
            let address = NodeAddress(host: reply[0].bytes, port: reply[1].int64, asker: asked.host)
        else {
            return missed(RedisFault(.unreachable, "it knows no master named \(sentinels.masterName)"))
        }
        guard RedisTopology.allows(address, namedBy: sentinels.nodes) else {
            return missed(
                RedisFault(
                    .unsupported, "the master is at \(address), and tokens would travel there in clear: use rediss://"))
        }
        misses = 0
        fault = nil
        if let master, master != address {
            log.warning(
                "the Sentinels name another master",
                ["from": .string(master.description), "to": .string(address.description)])
        }
        master = address
        found(address)
    }

    func didFail(_ id: UInt64, _ fault: RedisFault) { missed(fault) }

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {}

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {}

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        guard client === self.client else { return }
        switch state {
        case .ready:
            ask()
            timer?.arm(afterNanos: Self.lookNanos)
        case .waiting(let fault): missed(fault)
        case .idle, .connecting, .closed: break
        }
    }
}
