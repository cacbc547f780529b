import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Redis answers and reads, but takes no writes: it is full, was made a replica, or a key is broken.
///
/// Then the rule is: open to push, never silent. What can be read decides; the push goes without a badge, since the
/// number cannot be moved and is not guessed. Whose the token is must still be readable: without that nothing goes. The
/// refused claim is owed: the recipient keeps his slot and his offset until Redis has counted and marked him, so that
/// badge and duplicates stay exact. Beyond `owingMax`, and where no waiting helps, recipients end uncounted and are
/// remembered by this shard alone. Redis that does not answer at all is waited for: it holds the tokens.
extension Pipeline {
    /// Looks, without a write, at what the claim would have looked at; it takes the claim's place in the step.
    func claimRefused(_ job: RecipientJob, _ fault: RedisFault) {
        noteRefusal(fault)
        if !job.flags.contains(.unclaimed) { metrics.unclaimed.add() }
        job.flags.insert(.unclaimed)
        let request = ClaimRequest(job, nowMs: loop.wallMs)
        job.owed = fault.isLasting ? nil : .claim(request)
        ask(job) { (store) throws(RedisFault) in try store.peek(request, tag: job.tag(.claim)) }
    }

    /// A last look without a write: what was claimed once needs no other claim, only its number is not known.
    func lookRefused(_ job: RecipientJob, _ index: Int, _ fault: RedisFault) {
        noteRefusal(fault)
        do throws(RedisFault) {
            try store.peek(ClaimRequest(job, nowMs: loop.wallMs), tag: job.tag(.look, index))
        } catch {
            looked(job, index) { $0.hasFailed = true }
        }
    }

    /// What ended here uncounted has no mark in Redis.
    func recallUnclaimed(_ job: RecipientJob) {
        if unclaimedEnds.contains(job.pair) { job.claim?.state = .finished }
    }

    /// Everything is done but the claim: it is tried until Redis takes it, and then the mark follows.
    func payOwed(_ job: RecipientJob) {
        guard case .claim(let request) = job.owed else {
            // No waiting mends what is broken there: the mark may be taken nevertheless.
            metrics.uncounted.add()
            job.flags.remove(.unclaimed)
            return finish(job)
        }
        guard job.flags.contains(.owing) || owing < limits.owingMax else {
            metrics.uncounted.add()
            return leaveUnmarked(job)
        }
        if !job.flags.contains(.owing) {
            job.flags.insert(.owing)
            owing += 1
        }
        job.awaiting = 1
        ask(job) { (store) throws(RedisFault) in
            var request = request
            request.nowMs = loop.wallMs
            try store.claim(request, tag: job.tag(.finish))
        }
    }

    /// Redis will have no mark of this pair; this shard remembers it.
    func leaveUnmarked(_ job: RecipientJob) {
        unclaimedEnds.insert(job.pair)
        job.flags.insert(.unmarked)
        finish(job)
    }

    /// The end of a finishing step: of the owed claim, or of all.
    func didFinish(_ job: RecipientJob) {
        guard job.flags.contains(.unclaimed), !job.flags.contains(.unmarked) else { return done(job) }
        job.flags.remove(.unclaimed)
        job.owed = nil
        finish(job)
    }

    /// A key of ours that holds something of another kind: as if it were not there, since no waiting mends it. A token
    /// whose owner cannot be read is nobody's.
    func takeBroken(_ tag: Tag, _ fault: RedisFault, _ job: RecipientJob) {
        tell(fault, "a key of this worker's own is broken, and counts as absent")
        if tag.stage == .owner { job.lostTokens.append(Int(tag.index)) }
        answered(job, failed: false)
    }

    // MARK: - The state of Redis

    private static let forgetNanos: UInt64 = 10_000_000_000

    /// Whether this very key is what cannot be read; it then counts as absent. Everything else is tried again.
    func isAbsent(_ fault: RedisFault) -> Bool {
        guard fault.isAboutOneKey else { return false }
        tell(fault, "a key of others cannot be read, and counts as absent")
        return true
    }

    /// Once in ten seconds, however many recipients meet it. The server's own text may quote a key: it stays out.
    func tell(_ fault: RedisFault, _ text: StaticString) {
        guard loop.nowNanos &- toldNanos >= 10_000_000_000 || toldNanos == 0 else { return }
        toldNanos = loop.nowNanos
        log.error(text, ["code": .string(fault.code.name)])
    }

    func noteRefusal(_ fault: RedisFault) {
        if fault.isLasting { return tell(fault, "a key of this worker's own is broken: its user's badge stands still") }
        if refusal == nil {
            log.error(
                "Redis takes no writes: pushes go without a badge until it does", ["code": .string(fault.code.name)])
        }
        refusal = WriteRefusal(code: fault.code.name, lastNanos: loop.nowNanos)
    }

    /// Redis took a write.
    func noteWritten() {
        guard refusal != nil else { return }
        refusal = nil
        log.info("Redis takes writes again", ["owed": .int(owing)])
        holdChangesIfRefused()
    }

    /// Changes of user state must wait for Redis; so that they do not hold up the messages behind them, their topic is
    /// paused once many wait.
    func holdChangesIfRefused() {
        // Nothing is left that would be written, so nothing will tell; the next write shows how it is.
        if let last = refusal?.lastNanos, owing == 0, changes.count == 0, loop.nowNanos &- last > Self.forgetNanos {
            refusal = nil
        }
        let topics = Set(inputs.indices.filter { inputs[$0] == .userState })
        if refusal != nil, heldTopics.isEmpty, changes.count >= limits.changesMax / 2 {
            heldTopics = topics
            consumer.pause(consumer.assignment.filter { topics.contains($0.topic) })
        } else if refusal == nil, !heldTopics.isEmpty {
            heldTopics = []
            guard !intake.isPaused, !intake.isClosing else { return }
            consumer.resume(consumer.paused.subtracting(fullPartitions).filter { topics.contains($0.topic) })
        }
    }
}

/// Redis refuses writes.
struct WriteRefusal {
    /// `RedisFault.Code.name`.
    var code: String
    var lastNanos: UInt64
}

/// Pairs that ended without a mark in Redis: the newest so many, to tell their repeats.
struct UnclaimedEnds<Pair: Hashable> {
    private var known: Set<Pair> = []
    private var order: [Pair] = []
    private var oldest = 0
    private let capacity: Int

    init(capacity: Int = 65_536) {
        self.capacity = max(1, capacity)
    }

    var count: Int { known.count }

    func contains(_ pair: Pair) -> Bool { !known.isEmpty && known.contains(pair) }

    mutating func insert(_ pair: Pair) {
        guard known.insert(pair).inserted else { return }
        guard order.count >= capacity else { return order.append(pair) }
        known.remove(order[oldest])
        order[oldest] = pair
        oldest = (oldest + 1) % capacity
    }
}
