import EventLoop
import PushCore
import Redis
import Telemetry

/// From an event to each of its recipients, and from a recipient to all that is known of them.
extension Pipeline {
    // MARK: - The audience

    /// Starts recipients while there is room; goes on when there is again, or the next page of members is read.
    func expand(_ event: EventJob) {
        if expiresUnread(event) { return }
        guard startPage(of: event) else { return expanding.append(event) }
        endPage(of: event)
    }

    /// Room: slots, and a Redis that keeps up; whether APNs does is asked once per go, of groups only.
    ///
    /// Members whose reads would only wait in the pipeline cost memory and fall out of the processor's caches, and with
    /// many groups at once the last of them would run out of time. Below the depth at which reading from Kafka rests,
    /// so that records go on between a giant group's members.
    private var hasRoomForMembers: Bool {
        !recipients.isFull && store.client.pipelineDepth < limits.redisDepthMax * 3 / 4
    }

    /// False: the rest of the page has no room yet.
    private func startPage(of event: EventJob) -> Bool {
        if event.audience.group != nil, !event.audience.isPageDone, pushesAhead >= limits.pushesAheadMax {
            return false
        }
        while !event.audience.isPageDone {
            guard hasRoomForMembers else { return false }
            guard let member = event.audience.pop(), isWanted(member.uid, by: event) else { continue }
            let job = RecipientJob(event: event, uid: member.uid)
            (job.slot, job.generation) = recipients.insert(job)
            job.recipient.groupLevel = member.level
            event.holds += 1
            event.undecided += 1
            readMember(job)
        }
        return true
    }

    private func endPage(of event: EventJob) {
        if event.audience.group != nil, event.audience.cursor != nil { return readMembers(of: event) }
        flushDeliveries(of: event)
        release(event)
    }

    /// A group's message that nobody may get any more: one record with an empty uid (contract section 3).
    private func expiresUnread(_ event: EventJob) -> Bool {
        guard event.audience.isUnread, event.expiresAtMs <= loop.wallMs else { return false }
        write(OutcomeRecord(uid: "", verdict: .expired, reason: .expired), of: event, holder: .event(event))
        release(event)
        return true
    }

    /// The sender is always left out, and whom the event excludes; neither gets a result (contract, step 4).
    private func isWanted(_ uid: String, by event: EventJob) -> Bool {
        event.message?.read { $0.isMeant(for: uid) } ?? true
    }

    func readMembers(of event: EventJob) {
        guard let group = event.audience.group, let cursor = event.audience.cursor else { return }
        do throws(RedisFault) {
            try store.members(
                app: event.app.id, group: group, cursor: cursor, count: limits.memberPage, tag: event.tag(.members))
        } catch {
            retryMembers(event)
        }
    }

    func didReadMembers(_ event: EventJob, _ reply: borrowing RedisReply) {
        guard let page = MemberPage(reply) else { return retryMembers(event) }
        event.audience.take(page.members, cursor: page.cursor)
        expand(event)
    }

    /// A key that is no hash has no members; anything else is tried again.
    func didFailMembers(_ event: EventJob, _ fault: RedisFault) {
        guard fault.code == .wrongType else { return retryMembers(event) }
        tell(fault, "a group's members are of the wrong type: nobody is told")
        event.audience.take([], cursor: 0)
        expand(event)
    }

    func retryMembers(_ event: EventJob) {
        metrics.redisRetries.add()
        schedule(
            .retryMembers(JobRef(slot: event.slot, generation: event.generation)),
            dueNanos: loop.nowNanos &+ 500_000_000)
    }

    // MARK: - Recalls

    /// A recall takes the place of its target's alert, so it needs the collapse id that went with that one.
    func readOriginal(of event: EventJob) {
        guard let target = event.subject.revoke?.targetMsgID else { return expand(event) }
        do throws(RedisFault) {
            try store.collapseID(app: event.app.id, msgID: target, tag: event.tag(.original))
        } catch {
            retryOriginal(event)
        }
    }

    func didReadOriginal(_ event: EventJob, _ reply: borrowing RedisReply) {
        event.originalCollapseID = reply.isNull ? nil : reply.string
        expand(event)
    }

    func retryOriginal(_ event: EventJob) {
        metrics.redisRetries.add()
        schedule(
            .retryOriginal(JobRef(slot: event.slot, generation: event.generation)),
            dueNanos: loop.nowNanos &+ 500_000_000)
    }

    /// There may be room: looked for once for all that ended in this turn.
    func expandAtEndOfTurn() {
        guard !isExpansionDue, !expanding.isEmpty else { return }
        isExpansionDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isExpansionDue = false
            self?.expandWaiting()
        }
    }

    /// The audiences that wait go on as far as there is room, oldest first.
    func expandWaiting() {
        while let event = expanding.first, startPage(of: event) {
            expanding.removeFirst()
            endPage(of: event)
        }
    }

    // MARK: - Reading

    /// Step one of each round: presence, settings, tokens, mute, read mark, and the group's level.
    func read(_ job: RecipientJob) {
        job.step = .reading
        job.hasFailed = false
        job.flags.subtract([.shortWay, .wasFinished])
        job.recipient.presence.removeAll(keepingCapacity: true)
        job.recipient.tokens.removeAll(keepingCapacity: true)
        let event = job.event
        let app = event.app.id
        let uid = job.recipient.uid
        // The group's level came with the member scan; a given uid's has to be read.
        let group = event.readsLevels ? event.conversationID : nil
        let activity = event.startedActivityID
        job.awaiting = 3 + (group == nil ? 0 : 1) + (activity == nil ? 0 : 1)
        ask(job) { (store) throws(RedisFault) in
            try store.readConversation(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        ask(job) { (store) throws(RedisFault) in try store.readUser(app: app, uid: uid, tag: job.tag(.user)) }
        ask(job) { (store) throws(RedisFault) in try store.readPresence(app: app, uid: uid, tag: job.tag(.presence)) }
        if let group {
            ask(job) { (store) throws(RedisFault) in
                try store.readMember(app: app, group: group, uid: uid, tag: job.tag(.group))
            }
        }
        if let activity {
            ask(job) { (store) throws(RedisFault) in
                try store.activityStart(app: app, uid: uid, activityID: activity, tag: job.tag(.activity))
            }
        }
    }

    /// Sends one command of the present step; one that cannot be sent is an answer at once.
    func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(store)
        } catch {
            answered(job, failed: true)
        }
    }

    func didRead(_ job: RecipientJob) {
        if job.flags.contains(.shortWay) { return didReadMember(job) }
        job.step = .leasing
        let now = loop.nowNanos
        var unknown: [String] = []
        for presence in job.recipient.presence
        where presence.state != .off && !unknown.contains(presence.gateway)
            && leases.answer(for: presence.gateway, nowNanos: now) == .unknown
        {
            unknown.append(presence.gateway)
        }
        guard !unknown.isEmpty else { return decide(job) }
        job.awaiting = unknown.count
        for gateway in unknown { askLease(of: gateway, for: job) }
    }

    private func askLease(of gateway: String, for job: RecipientJob) {
        if let query = leaseQueryOf[gateway] {
            query.waiting.append(job.ref)
            return
        }
        let query = LeaseQuery(gateway: gateway)
        (query.slot, query.generation) = leaseQueries.insert(query)
        query.waiting.append(job.ref)
        leaseQueryOf[gateway] = query
        do throws(RedisFault) {
            try store.lease(gateway, tag: Tag(slot: query.slot, generation: query.generation, stage: .lease).bits)
        } catch {
            ended(query, failed: true)
        }
    }

    func ended(_ query: LeaseQuery, failed: Bool) {
        leaseQueries.remove(slot: query.slot)
        leaseQueryOf[query.gateway] = nil
        for case let job? in query.waiting.map(job) { answered(job, failed: failed) }
    }

    /// One of the answers that the present step waits for.
    func answered(_ job: RecipientJob, failed: Bool) {
        job.awaiting -= 1
        if failed { job.hasFailed = true }
        guard job.awaiting == 0 else { return }
        if job.hasFailed { return retryLater(job) }
        job.retries = 0
        switch job.step {
        case .reading: known.append(job)
        case .leasing: decide(job)
        case .claiming: didClaim(job)
        case .checkingAcks: didReadAcks(job)
        case .finishing: didFinish(job)
        case .sending: break
        }
    }

    /// Redis could not answer: the step is taken again after a pause; nothing is guessed and nothing is lost.
    private func retryLater(_ job: RecipientJob) {
        job.retries += 1
        // The others of this event must not wait for this one.
        flushDeliveries(of: job.event, evenIfUndecided: true)
        scheduleRetry(.retry(job.ref), failures: job.retries)
    }

    func retry(_ job: RecipientJob) {
        switch job.step {
        case .reading, .leasing, .claiming: read(job)
        case .checkingAcks: checkAcks(job)
        case .finishing: finish(job)
        case .sending: break
        }
    }
}

/// A question about one gateway's lease and everyone who waits for the answer.
final class LeaseQuery {
    let gateway: String
    var slot = 0
    var generation: UInt32 = 0
    var waiting: [JobRef] = []

    init(gateway: String) {
        self.gateway = gateway
    }
}
