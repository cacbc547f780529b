// SPDX-License-Identifier: Apache-2.0
internal import EventLoop
internal import Telemetry

/// Asks all Sentinels for the master: once a second, and at once when the link to the master is lost or turns out to be a
/// replica. `SentinelVotes` decides.
///
/// Bound to its loop's thread. The master's client owns it.
final class SentinelWatch {
    /// The master that a majority names; nil while none does.
    private(set) var master: NodeAddress?

    private let sentinels: RedisSentinels
    private let loop: Loop
    private let limits: RedisLimits
    private let log: Log
    private let tls: RedisTLS?
    /// Receives the master's address when a majority begins to name it.
    private let found: (NodeAddress) -> Void
    /// No majority names a master, for this reason.
    private let lost: (RedisFault) -> Void
    private var votes: SentinelVotes
    private var links: [SentinelLink] = []
    private var timer: LoopTimer?
    /// The master that was used last, and the reason in the log since then.
    private var last: NodeAddress?
    private var toldText = ""

    private static let lookNanos: UInt64 = 1_000_000_000

    init(
        loop: Loop, _ sentinels: RedisSentinels, limits: RedisLimits, log: Log,
        found: @escaping (NodeAddress) -> Void, lost: @escaping (RedisFault) -> Void
    ) throws(TLSFault) {
        self.loop = loop
        self.sentinels = sentinels
        self.log = log
        self.found = found
        self.lost = lost
        var own = limits
        // A Sentinel that is back has its say soon.
        own.backoffMaxNanos = min(limits.backoffMaxNanos, Self.lookNanos)
        self.limits = own
        votes = SentinelVotes(count: sentinels.nodes.count, masterName: sentinels.masterName)
        tls = try sentinels.nodes.first?.tls()
    }

    func start() {
        timer = LoopTimer(loop: loop) { [unowned self] in askAndJudge() }
        timer?.arm(afterNanos: Self.lookNanos)
        let metrics = RedisMetrics(nil)
        links = sentinels.nodes.enumerated().map { number, endpoint in
            let client = RedisClient(
                loop: loop, endpoint: endpoint, limits: limits, log: .off, metrics: metrics, role: .sentinel,
                tls: endpoint.usesTLS ? tls : nil)
            return SentinelLink(number, client, self)
        }
        for link in links { link.start() }
    }

    func close() {
        timer = nil
        let links = links
        self.links = []
        for link in links { link.close() }
    }

    /// The master is in doubt: the next questions are immediate.
    func askNow() { for link in links { ask(link) } }

    func ask(_ link: SentinelLink) { link.ask(sentinels.masterName) }

    private func askAndJudge() {
        timer?.arm(afterNanos: Self.lookNanos)
        askNow()
        judge()
    }

    // MARK: Answers

    /// - Parameter master: nil if the Sentinel knows none.
    func answered(_ sentinel: Int, _ master: NodeAddress?, epoch: Int64, _ named: (RedisFault) -> RedisFault) {
        if let master, RedisTopology.allows(master, namedBy: sentinels.nodes) {
            votes.answered(sentinel, master, epoch: epoch, nowNanos: loop.nowNanos)
        } else if let master {
            votes.refused(
                sentinel,
                named(
                    RedisFault(
                        .unsupported,
                        "the master is at \(master), and tokens would travel there in clear: use rediss://")))
        } else {
            votes.refused(
                sentinel, named(RedisFault(.unreachable, "it knows no master named \(sentinels.masterName)")))
        }
        judge()
    }

    func failed(_ sentinel: Int, _ fault: RedisFault) {
        votes.failed(sentinel, fault)
        judge()
    }

    private func judge() {
        switch votes.verdict(nowNanos: loop.nowNanos) {
        case .undecided: break
        case .master(let address):
            if master == address { return }
            if let last, last != address {
                log.warning(
                    "the Sentinels name another master",
                    ["from": .string(last.description), "to": .string(address.description)])
            }
            toldText = ""
            (master, last) = (address, address)
            found(address)
        case .none(let fault):
            // Once closed, the links that end have no say.
            guard !links.isEmpty, toldText != fault.text else { return }
            if toldText.isEmpty {
                log.error(
                    "Redis is not used: no majority of the Sentinels names a master", ["why": .string(fault.text)])
            }
            toldText = fault.text
            master = nil
            lost(fault)
        }
    }
}
