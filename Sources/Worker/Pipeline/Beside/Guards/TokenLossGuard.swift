// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis
import Telemetry

/// Counts the keys of Redis and says whether it lost its tokens (`TokenLoss`). Then recipients without a token wait, and nothing
/// is read until the loss is explained or accepted.
final class TokenLossGuard {
    private let shard: ShardContext
    private let work: WorkTable
    private let lookup: Lookup
    private let intakes: [Intake]
    private var loss = TokenLoss()
    /// `token_loss: stop`.
    private let stopsReading: Bool
    /// Recipients without a token that wait until the keys are counted.
    private var unconfirmed: [RecipientJob] = []
    /// When the keys were asked for, monotonic; nil if no answer is outstanding.
    private var askedNanos: UInt64?
    /// The same time by the server's clock, Unix ms.
    private var askedServerMs: Int64 = 0
    /// When the query of the last count was sent, monotonic.
    private var countedNanos: UInt64 = 0
    /// When all keys were there last, by the server's clock, Unix ms.
    private var wholeMs: Int64 = 0
    /// The server processes of the last links (`RedisServers.serverGeneration`).
    private var seenServer: UInt32 = 0
    /// The log and the metrics say that tokens are lost.
    private var isTold = false
    private var eviction = EvictionWatch()

    /// - Parameters:
    ///   - intakes: they do not read while tokens are lost.
    ///   - stopsReading: `token_loss: stop`.
    init(
        _ shard: ShardContext, _ work: WorkTable, lookup: Lookup, _ intakes: [Intake], stopsReading: Bool
    ) {
        self.shard = shard
        self.work = work
        self.lookup = lookup
        self.intakes = intakes
        self.stopsReading = stopsReading
    }

    /// Nothing is read.
    var isStopped: Bool { loss.isStopped && stopsReading }

    /// Keys of all servers at the last count before any were lost.
    var keysBefore: Int64 { loss.keysBefore }

    /// Defers recipients without tokens while data loss is suspected. Later rounds, and decisions without an alert, are
    /// not affected.
    func admit(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        guard let decision = candidate.decision, case .allow = decision.alert, !job.isDecided,
            !job.uid.isEmpty, job.event.digest == nil
        else { return .goesOn }
        if decision.reachesNobody, !isConfirmed(job) {
            // The tokens may have been lost just before they were read: the keys are counted first.
            lookup.stepOut(job)
            unconfirmed.append(job)
            if countedNanos < job.readNanos { ask() }
            return .kept
        }
        let answer = loss.decided(hasToken: !decision.reachesNobody, nowMs: shard.nowMs)
        if answer == .decide { return .goesOn }
        if answer == .ask {
            ask()
            // An operator may have accepted the loss: the shard stops with the answer, unless it was accepted.
            shard.askAcceptance()
        }
        guard stopsReading else { return .goesOn }
        lookup.postpone(job)
        return .kept
    }

    /// Keys were counted after the recipient was read. Where Redis may evict tokens, evictions were looked at too.
    private func isConfirmed(_ job: RecipientJob) -> Bool {
        countedNanos >= job.readNanos && (!eviction.takesTokens || eviction.lookedNanos >= job.readNanos)
    }

    // MARK: Evictions

    /// The `maxmemory-policy` of a server that may evict state; nil if none may.
    var evictingPolicy: String? { eviction.policy }

    /// Whether the next heartbeat asks each server for its evictions.
    func looksAtEviction() -> Bool { eviction.isDue(nowNanos: shard.nowNanos) }

    /// A server's heartbeat was answered.
    func didBeat(_ server: Int, _ beat: StateStore.Beat) {
        guard let evicted = beat.evicted else { return }
        let before = eviction.policy
        let fresh = eviction.didLook(server, evicted: evicted, policy: beat.policy)
        if let policy = eviction.policy, policy != before {
            shard.log.warning("Redis may evict state: set maxmemory-policy noeviction", ["policy": .string(policy)])
        }
        if fresh == 0 { return }
        shard.log.error(
            "Redis evicted keys, and any token may be among them: set maxmemory-policy noeviction and restore the keys",
            ["count": .int(Int(clamping: fresh)), "policy": .string(beat.policy ?? "unknown")])
        let wasOpen = loss.isOpen
        loss.evicted()
        if !wasOpen { shard.askAcceptance() }
        apply()
    }

    /// Every server was asked for its evictions in a heartbeat that was sent then (monotonic).
    func didLookEverywhere(sentNanos: UInt64) {
        eviction.lookedNanos = sentNanos
        if !unconfirmed.isEmpty { decideConfirmed() }
    }

    // MARK: Keys

    /// Asks for the number of keys; while stopped, also for an operator's acceptance.
    func ask() {
        if !shard.store.client.isReady || askedNanos != nil { return }
        askedNanos = shard.nowNanos
        askedServerMs = shard.redisMs
        do throws(RedisFault) {
            try shard.store.keyCount(tag: Tag(.none, .keyCount).bits)
        } catch {
            return didFailToCount(error)
        }
        if loss.isOpen { shard.askAcceptance() }
    }

    /// A link is ready, possibly to another server.
    func linkIsReady() {
        let generation = shard.store.client.serverGeneration
        if seenServer != 0, generation != seenServer { loss.serverChanged() }
        seenServer = generation
        ask()
    }

    /// Ignores a server that cannot report its key count. After a temporary fault, waiting recipients are read again.
    func didFailToCount(_ fault: RedisFault) {
        switch fault.code {
        case .noPermission, .refused, .unsupported, .wrongType, .scriptFailed: return didCount(nil)
        default: break
        }
        askedNanos = nil
        let jobs = unconfirmed
        unconfirmed = []
        for job in jobs where work.recipient(job.ref) === job { lookup.postpone(job) }
    }

    /// Decides recipients that were read before the keys were counted; for the others they are counted again.
    private func decideConfirmed() {
        let jobs = unconfirmed
        unconfirmed = []
        for job in jobs where work.recipient(job.ref) === job && job.candidate?.phase == .postponed {
            if isConfirmed(job) { lookup.known.append(job) } else { unconfirmed.append(job) }
        }
        if unconfirmed.contains(where: { countedNanos < $0.readNanos }) { ask() }
        shard.requestTurn()
    }

    /// - Parameter counts: keys of each server, nil for one that is down; nil if Redis does not report them.
    func didCount(_ counts: [Int64: Int64?]?) {
        countedNanos = askedNanos ?? shard.nowNanos
        askedNanos = nil
        defer { decideConfirmed() }
        if let counts {
            shard.metrics.redisKeys.set(Double(counts.values.reduce(Int64(0)) { $0 &+ ($1 ?? 0) }))
            let wasOpen = loss.isOpen
            loss.counted(counts, nowMs: shard.nowMs)
            if !loss.isOpen { wholeMs = askedServerMs }
            // An operator may have accepted it before this shard noticed.
            if loss.isOpen, !wasOpen { shard.askAcceptance() }
        } else {
            loss.couldNotCount()
        }
        apply()
    }

    /// An acceptance applies to each loss that began before it, whether this shard stopped for it or not yet.
    ///
    /// - Parameter atMs: when an operator accepted a loss, by the server's clock, Unix ms; nil: nobody did.
    func didReadAcceptance(_ atMs: Int64?) {
        if let atMs, loss.isOpen, atMs >= wholeMs { loss.goOn(shard.nowMs) }
        apply()
    }

    /// Stops or continues after a change of `loss`, and logs it.
    private func apply() {
        let isStopped = loss.isStopped
        if isStopped == isTold { return }
        isTold = isStopped
        shard.metrics.tokenLoss.set(isStopped ? 1 : 0)
        for intake in intakes { intake.block(.tokenLoss, self.isStopped) }
        if isStopped {
            shard.log.error(
                "Redis lost keys and users have no tokens: they wait until the keys are back or `tokens accept` is run",
                ["reading": .string(stopsReading ? "stopped" : "goes on")])
        } else {
            lookup.readPostponed(evenIfEarly: true)
            shard.log.warning("tokens are back, or their loss was accepted: reading resumed")
        }
        shard.requestTurn()
    }
}
