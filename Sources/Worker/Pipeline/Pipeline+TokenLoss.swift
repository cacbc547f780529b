import EventLoop
import PushCore
import Redis
import Telemetry

/// Redis lost its tokens: recipients without a token wait, and nothing is read until that is explained or accepted.
extension Pipeline {
    var isStoppedByLoss: Bool { tokenLoss.isStopped && stopsAtTokenLoss }

    /// Defers recipients without tokens while data loss is suspected. Later rounds, and decisions without an alert, are
    /// not affected.
    func waitsForTokens(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        guard let decision = candidate.decision, case .allow = decision.alert, !job.flags.contains(.decided),
            !job.uid.isEmpty, job.event.digest == nil
        else { return false }
        if decision.reachesNobody, keysCountedNanos < job.readNanos {
            // The tokens may have been lost just before they were read: the keys are counted first.
            lookup.stepOut(job)
            unconfirmed.append(job)
            askKeys()
            return true
        }
        let answer = tokenLoss.decided(hasToken: !decision.reachesNobody, nowMs: shard.nowMs)
        if answer == .decide { return false }
        if answer == .ask {
            askKeys()
            // An operator may have accepted the loss: the shard stops with the answer, unless it was accepted.
            askAcceptance()
        }
        guard stopsAtTokenLoss else { return false }
        lookup.postpone(job)
        return true
    }

    /// Asks for the number of keys; while stopped, also for an operator's acceptance.
    func askKeys() {
        guard shard.store.client.isReady, keysAskedNanos == nil else { return }
        keysAskedNanos = shard.nowNanos
        askedServerMs = shard.nowMs &+ serverAheadMs
        do throws(RedisFault) {
            try shard.store.keyCount(tag: Tag(.none, .keyCount).bits)
        } catch {
            return didFailToCount(error)
        }
        if tokenLoss.isOpen { askAcceptance() }
    }

    /// Asks when an operator accepted a loss last.
    func askAcceptance() { try? shard.store.lossAccepted(tag: Tag(.none, .lossAccepted).bits) }

    /// A link is ready, possibly to another server.
    func checkServer() {
        let generation = shard.store.client.serverGeneration
        if seenServer != 0, generation != seenServer { tokenLoss.serverChanged() }
        seenServer = generation
        // Before anything is read over this link: its answer comes first.
        beat()
        askKeys()
    }

    /// Ignores a server that cannot report its key count. After a temporary fault, waiting recipients are read again.
    func didFailToCount(_ fault: RedisFault) {
        switch fault.code {
        case .noPermission, .refused, .unsupported, .wrongType, .scriptFailed: return didCountKeys(nil)
        default: break
        }
        keysAskedNanos = nil
        let jobs = unconfirmed
        unconfirmed = []
        for job in jobs where work.recipient(job.ref) === job { lookup.postpone(job) }
    }

    /// Decides recipients that were read before the keys were counted; for the others they are counted again.
    private func decideConfirmed() {
        let jobs = unconfirmed
        unconfirmed = []
        for job in jobs where work.recipient(job.ref) === job && job.candidate?.phase == .postponed {
            if keysCountedNanos >= job.readNanos { lookup.known.append(job) } else { unconfirmed.append(job) }
        }
        if !unconfirmed.isEmpty { askKeys() }
        shard.requestTurn()
    }

    /// - Parameter counts: keys of each server, nil for one that is down; nil if Redis does not report them.
    func didCountKeys(_ counts: [Int64: Int64?]?) {
        keysCountedNanos = keysAskedNanos ?? shard.nowNanos
        keysAskedNanos = nil
        defer { decideConfirmed() }
        if let counts {
            shard.metrics.redisKeys.set(Double(counts.values.reduce(Int64(0)) { $0 &+ ($1 ?? 0) }))
            let wasOpen = tokenLoss.isOpen
            tokenLoss.counted(counts, nowMs: shard.nowMs)
            if !tokenLoss.isOpen { keysWholeMs = askedServerMs }
            // An operator may have accepted it before this shard noticed.
            if tokenLoss.isOpen, !wasOpen { askAcceptance() }
        } else {
            tokenLoss.couldNotCount()
        }
        applyLoss()
    }

    /// An acceptance applies to each loss that began before it, whether this shard stopped for it or not yet.
    ///
    /// - Parameter atMs: when an operator accepted a loss, by the server's clock, Unix ms; nil: nobody did.
    func didReadAcceptance(_ atMs: Int64?) {
        if let atMs, tokenLoss.isOpen, atMs >= keysWholeMs { tokenLoss.goOn(shard.nowMs) }
        applyLoss()
        guard let atMs else { return }
        for (server, loss) in dataAge.losses where atMs >= loss.noticedMs {
            try? shard.store.dropLoss(server: server, loss: loss.id, tag: Tag.noteBits)
        }
    }

    /// Stops or continues after a change of `tokenLoss`, and logs it.
    private func applyLoss() {
        let isStopped = tokenLoss.isStopped
        guard isStopped != isLossTold else { return }
        isLossTold = isStopped
        shard.metrics.tokenLoss.set(isStopped ? 1 : 0)
        for intake in [events, chunks] { intake.block(.tokenLoss, isStoppedByLoss) }
        if isStopped {
            shard.log.error(
                "Redis lost keys and users have no tokens: they wait until the keys are back or `tokens accept` is run",
                ["reading": .string(stopsAtTokenLoss ? "stopped" : "goes on")])
        } else {
            lookup.readPostponed(evenIfEarly: true)
            shard.log.warning("tokens are back, or their loss was accepted: reading resumed")
        }
        shard.requestTurn()
    }
}
