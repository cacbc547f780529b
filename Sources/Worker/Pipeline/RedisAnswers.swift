// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis
import Telemetry

/// The router of Redis' answers to the components that asked, by the table in `Question`: a layer above all of them.
final class RedisAnswers: RedisClientDelegate {
    private let shard: ShardContext
    private let work: WorkTable
    private let lookup: Lookup
    private let fanOut: FanOut
    private let claims: Claims
    private let dispatcher: Dispatcher
    private let sender: Sender
    private let recorder: Recorder
    private let userStates: UserStates
    private let bursts: Bursts
    private let digests: Digests
    private let badgeUpdates: BadgeUpdates
    private let newestBadges: NewestBadges
    private let guards: GuardAnswers

    init(
        _ shard: ShardContext, _ work: WorkTable, lookup: Lookup, fanOut: FanOut, claims: Claims,
        dispatcher: Dispatcher, sender: Sender, recorder: Recorder, userStates: UserStates, bursts: Bursts,
        digests: Digests, badgeUpdates: BadgeUpdates, newestBadges: NewestBadges, guards: GuardAnswers
    ) {
        self.shard = shard
        self.work = work
        self.lookup = lookup
        self.fanOut = fanOut
        self.claims = claims
        self.dispatcher = dispatcher
        self.sender = sender
        self.recorder = recorder
        self.userStates = userStates
        self.bursts = bursts
        self.digests = digests
        self.badgeUpdates = badgeUpdates
        self.newestBadges = newestBadges
        self.guards = guards
    }

    func redis(_ client: RedisClient, didReply bits: UInt64, reply: borrowing RedisReply) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no command has") }
        let row = tag.question.row
        shard.loop.stageClock?.enter(row.stage)
        guard row.reply.fits(reply.kind) else {
            let fault = RedisFault(.protocolViolation, "the reply is not of the command's kind")
            return self.redis(client, didFail: bits, fault: fault)
        }
        if shard.isRedisBehind, row.isOfUsers {
            let fault = RedisFault(.connectionLost(wasSent: true), "Redis has older data than before")
            return self.redis(client, didFail: bits, fault: fault)
        }
        switch row.asker {
        case .lookup: lookup.didReply(tag, reply)
        case .fanOut: fanOut.didReply(tag, reply)
        case .claims: claims.didReply(tag, reply)
        case .dispatcher:
            dispatcher.didReply(tag, reply)
            passIfRouted(tag)
        case .sender: sender.didReply(tag, reply)
        case .recorder: recorder.didReply(tag, reply)
        case .userStates: userStates.didReply(tag.ref, reply)
        case .bursts: bursts.didLook(tag.ref, ClaimReply(reply))
        case .digests: digests.didReply(tag, reply)
        case .badgeUpdates: badgeUpdates.didReply(tag, reply)
        case .newestBadges: newestBadges.didReply(tag, reply)
        case .aside: guards.didReply(tag, reply)
        case .nobody: break
        }
    }

    func redis(_ client: RedisClient, didFail bits: UInt64, fault: RedisFault) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no command has") }
        let row = tag.question.row
        let isAbsent = countsAsAbsent(tag, row, fault)
        switch row.asker {
        case .lookup: lookup.didFail(tag, fault, isAbsent: isAbsent)
        case .fanOut: fanOut.didFail(tag, fault, isAbsent: isAbsent)
        case .claims: claims.didFail(tag, fault, isAbsent: isAbsent)
        case .dispatcher:
            dispatcher.didFail(tag, fault, isAbsent: isAbsent)
            passIfRouted(tag)
        case .sender: sender.didFail(tag, fault, isAbsent: isAbsent)
        case .recorder: recorder.didFail(tag, fault)
        case .userStates: userStates.didFail(tag.ref, fault)
        case .bursts: bursts.didLook(tag.ref, nil)
        case .digests: digests.didFail(tag, fault)
        case .badgeUpdates: badgeUpdates.didFail(tag, isAbsent: isAbsent)
        case .newestBadges: newestBadges.didFail(tag)
        case .aside: guards.didFail(tag, fault)
        case .nobody: break
        }
        shard.requestTurn()
    }

    /// Whether the question's key can never be read, and counts as absent: waiting does not help. Other faults are retried.
    private func countsAsAbsent(_ tag: Tag, _ row: Question.Row, _ fault: RedisFault) -> Bool {
        guard fault.isLasting, let owner = row.absentKey else { return false }
        let subject =
            switch row.asker {
            case .lookup: lookup.subject(of: tag)
            case .fanOut: work.event(tag.ref).map { "event \($0.app.id):\($0.id)" }
            case .badgeUpdates: work.badgeUpdate(tag.ref).map { "\($0.app.id):\($0.uid)" }
            default: work.recipient(tag.ref).map { "\($0.event.app.id):\($0.uid)" }
            }
        let text: StaticString =
            switch owner {
            case .worker: "a key of this worker's own is broken, and counts as absent"
            case .otherSystem: "an unreadable key of another system counts as absent"
            }
        shard.writes.report(fault, text, key: subject.map { "\(tag.question) of \($0)" }, nowNanos: shard.nowNanos)
        return true
    }

    func redisDidDeliverReplies(_ client: RedisClient) { shard.requestTurn() }

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        if state != .ready { return }
        // Reported before a write meets it, and again with each check whether it is still a replica. For a cluster node
        // the map decides its role.
        if !shard.store.client.isCluster, client.server.isReplica ?? false {
            shard.writes.refused(RedisFault(.readOnly), nowNanos: shard.nowNanos)
        }
        // Before anything is read over this link: its answer comes first.
        guards.linkIsReady()
        fanOut.noteAgain()
        userStates.serverMayHaveChanged()
        lookup.readPostponed(evenIfEarly: true)
        shard.requestTurn()
    }

    /// The acks are known, so that later recipients of its conversation may continue.
    private func passIfRouted(_ tag: Tag) {
        if tag.question == .acks, let job = work.recipient(tag.ref), job.candidate == nil { lookup.passed(job) }
    }
}

/// The router of Redis' answers to the guards and the statistics, which are not on the path of a push.
struct GuardAnswers {
    private let tokenLoss: TokenLossGuard
    private let clock: ClockGuard
    private let dataAge: DataAgeGuard
    private let counts: CountWriter
    private let fleet: FleetNotes

    init(
        tokenLoss: TokenLossGuard, clock: ClockGuard, dataAge: DataAgeGuard, counts: CountWriter, fleet: FleetNotes
    ) {
        self.fleet = fleet
        self.tokenLoss = tokenLoss
        self.clock = clock
        self.dataAge = dataAge
        self.counts = counts
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.question {
        case .keyCount:
            let counts = StateStore.keyCounts(reply)
            counts == nil ? tokenLoss.didFailToCount(RedisFault(.protocolViolation)) : tokenLoss.didCount(counts)
        case .time: clock.didRead(StateStore.timeMs(reply))
        case .lossAccepted: didReadAcceptance(reply.string.flatMap { Int64($0) })
        case .beat: dataAge.didBeat(tag.ref, reply)
        case .beatLook: dataAge.didLookAtBeat(tag.ref.slot, count: reply.int64)
        case .beginCounting: counts.didBeginCounting(reply)
        case .count: counts.didCount(reply)
        case .fleet: fleet.didRead(StateStore.fleet(reply))
        default: break
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        switch tag.question {
        case .keyCount: tokenLoss.didFailToCount(fault)
        case .time: clock.didFailToAsk(fault)
        case .lossAccepted: didReadAcceptance(nil)
        case .beat: dataAge.didFailToBeat(tag.ref.slot, fault)
        case .beginCounting, .count: counts.didFail(fault)
        default: break
        }
    }

    /// - Parameter atMs: when an operator accepted a loss, by the server's clock, Unix ms; nil: nobody did.
    private func didReadAcceptance(_ atMs: Int64?) {
        tokenLoss.didReadAcceptance(atMs)
        if let atMs { dataAge.didReadAcceptance(atMs) }
    }

    func linkIsReady() {
        dataAge.beat()
        tokenLoss.linkIsReady()
    }
}
