// SPDX-License-Identifier: Apache-2.0
import Payload
import PushCore
import Redis
import Telemetry

/// The reads that an event needs before its recipients begin.
extension FanOut {
    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.stage {
        case .members: didReadMembers(tag.ref, reply)
        case .tokenOwner: didReadOwner(tag, reply)
        case .groupSize: didReadSize(tag.ref, count: reply.int64)
        case .original: didReadCollapseID(tag.ref, StateStore.keptCollapseID(reply))
        case .originalMarks: didReadOriginal(tag.ref, StateStore.hasGroupMarks(reply) ? .known(nil) : .unknown)
        case .tries: didReadTries(tag, isThere: !reply.isNull)
        default: didReadParked(tag.ref, StateStore.parkedNote(reply))
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        switch tag.stage {
        case .members: didFailMembers(tag.ref, fault)
        case .tokenOwner: didFailOwner(tag, fault)
        case .groupSize: didFailSize(tag.ref, fault)
        case .original, .originalMarks: didFailOriginal(tag, isAbsent: shard.countsAsAbsent(fault))
        case .tries: didFailTries(tag, isAbsent: shard.countsAsBroken(fault))
        default: didFailParked(tag.ref, isAbsent: shard.countsAsBroken(fault))
        }
    }

    // MARK: Pages

    func readPage(of event: EventJob) {
        // Again after a fault: the note may be lost with the connection.
        if event.audience.isUnread { noteTry(of: event) }
        if let tokens = event.audience.tokenPage { return readOwners(of: event, tokens) }
        event.fanOutPhase = .readingPage
        let count = event.plan == nil ? shard.limits.memberPage : ChunkPlan.membersMax
        do throws(RedisFault) {
            if let activity = event.audience.activity {
                try shard.store.activityUsers(
                    app: event.app.id, activityID: activity, after: event.audience.lastUser, count: count,
                    tag: event.tag(.members))
            } else if let group = event.audience.group,
                let cursor = event.audience.beginPage(
                    shard.store.memberServer(app: event.app.id, group: group))
            {
                try shard.store.members(
                    app: event.app.id, group: group, cursor: cursor, count: count, tag: event.tag(.members))
            }
        } catch {
            retryLater(.retryMembers(event.ref), event)
        }
    }

    private func didReadMembers(_ ref: WorkRef, _ reply: borrowing RedisReply) {
        guard let event = work.event(ref), event.fanOutPhase == .readingPage else { return shard.late() }
        if event.audience.activity != nil {
            let users = StateStore.activityUsers(reply)
            event.audience.take(users: users, isLast: users.count < shard.limits.memberPage)
            return event.fanOutPhase = .ready
        }
        guard let page = MemberPage(reply) else { return retryLater(.retryMembers(ref), event) }
        event.failures = 0
        event.fanOutPhase = .ready
        if page.emptyCount > 0 { shard.metrics.emptyMembers.add(UInt64(page.emptyCount)) }
        pages &+= 1
        let isForgotten = TestBreak.isOn(.forgetPage) && pages.isMultiple(of: 2)
        event.audience.take(isForgotten ? [] : page.members, cursor: page.cursor)
        // No recipient is started before the number of members is known.
        if event.audience.wantsPage, !event.isSized { readSize(of: event) }
    }

    private func readSize(of event: EventJob) {
        guard let group = event.audience.group else { return shard.mistake("the size is read of no group") }
        event.fanOutPhase = .readingSize
        do throws(RedisFault) {
            try shard.store.memberCount(app: event.app.id, group: group, tag: event.tag(.groupSize))
        } catch {
            retryLater(.retryMembers(event.ref), event)
        }
    }

    private func didReadSize(_ ref: WorkRef, count: Int64?) {
        guard let event = work.event(ref), event.fanOutPhase == .readingSize else { return shard.late() }
        event.failures = 0
        event.fanOutPhase = .ready
        event.isSized = true
        if planner.divides(members: Int(clamping: count ?? 0), of: event) { event.plan = ChunkPlan() }
    }

    private func didFailSize(_ ref: WorkRef, _ fault: RedisFault) {
        guard let event = work.event(ref), event.fanOutPhase == .readingSize else { return shard.late() }
        if shard.countsAsAbsent(fault, key: "group \(event.app.id):\(event.conversationID)") {
            return didReadSize(ref, count: nil)
        }
        retryLater(.retryMembers(ref), event)
    }

    /// If the members' key can never be read, one record says so; other faults are retried.
    private func didFailMembers(_ ref: WorkRef, _ fault: RedisFault) {
        guard let event = work.event(ref), event.fanOutPhase == .readingPage else { return shard.late() }
        guard fault.isLasting else { return retryLater(.retryMembers(ref), event) }
        shard.writes.report(
            fault, "the members of a group cannot be read: nobody gets the message",
            key: "group \(event.app.id):\(event.conversationID)", nowNanos: shard.nowNanos)
        event.fanOutPhase = .ready
        startForNobody(event, .noToken)
    }

    func retryMembers(_ ref: WorkRef) {
        guard let event = work.event(ref) else { return shard.late() }
        switch event.fanOutPhase {
        case .readingPage, .readingOwners: readPage(of: event)
        case .readingSize: readSize(of: event)
        case .readingTries: readTries(of: event)
        case .ready, .readingOriginal, .readingParked: shard.late()
        }
    }

    func retryLater(_ item: DueItem, _ event: EventJob) {
        event.failures += 1
        shard.timers.schedule(item, dueNanos: shard.retryNanos(failures: Int(event.failures)))
    }

    // MARK: Earlier tries

    /// The event has expired before its recipients were read here. If an earlier try read them, each has an outcome of its own, and
    /// those that it finished count by their marks. Otherwise the event has one record for nobody, as it has if an earlier try
    /// began that record.
    func readTries(of event: EventJob) { ask(.note, event) }

    private enum TryQuestion: Int {
        /// Did a try begin to read the recipients?
        case note
        /// Did one begin the record for nobody?
        case nobody
    }

    private func ask(_ question: TryQuestion, _ event: EventJob) {
        event.fanOutPhase = .readingTries
        let tag = event.tag(.tries, question.rawValue)
        do throws(RedisFault) {
            switch question {
            case .note:
                try shard.store.readGroupMarks(app: event.app.id, uid: "", id: event.subject.id, tag: tag)
            case .nobody:
                try shard.store.readMark(
                    app: event.app.id, uid: "", kind: event.subject.kind, id: event.subject.id, tag: tag)
            }
        } catch {
            retryLater(.retryMembers(event.ref), event)
        }
    }

    private func didReadTries(_ tag: Tag, isThere: Bool) {
        guard let event = work.event(tag.ref), event.fanOutPhase == .readingTries, !event.isHandedBack else {
            return shard.late()
        }
        event.failures = 0
        if tag.index == TryQuestion.note.rawValue, isThere { return ask(.nobody, event) }
        event.fanOutPhase = .ready
        if tag.index == TryQuestion.nobody.rawValue, !isThere {
            event.wasTried = true
        } else {
            startForNobody(event, .expired)
        }
    }

    private func didFailTries(_ tag: Tag, isAbsent: Bool) {
        if isAbsent { return didReadTries(tag, isThere: false) }
        guard let event = work.event(tag.ref), event.fanOutPhase == .readingTries else { return shard.late() }
        retryLater(.retryMembers(tag.ref), event)
    }

    // MARK: Parked conversations

    /// Reads whether an earlier event of the conversation is parked with all its recipients.
    func readParked(_ event: EventJob) {
        event.fanOutPhase = .readingParked
        do throws(RedisFault) {
            try shard.store.readParked(
                app: event.app.id, conversation: event.conversationID, tag: event.tag(.parkedBefore))
        } catch {
            retryLater(.retryParked(event.ref), event)
        }
    }

    private func didReadParked(_ ref: WorkRef, _ note: ParkedNote?) {
        guard let event = work.event(ref), event.fanOutPhase == .readingParked else { return shard.late() }
        event.failures = 0
        event.fanOutPhase = .ready
        guard let leftMs = note?.leftMs(nowMs: shard.nowMs), event.raw.count <= ParkedRecord.rawMax,
            open.contains(where: { $0 === event })
        else { return }
        open.removeAll { $0 === event }
        // It is settled once the broker has the parked record.
        event.isHandedBack = true
        event.audience.abandon()
        endAudience(event)
        behind.append((event, leftMs))
    }

    private func didFailParked(_ ref: WorkRef, isAbsent: Bool) {
        if isAbsent { return didReadParked(ref, nil) }
        guard let event = work.event(ref), event.fanOutPhase == .readingParked else { return shard.late() }
        retryLater(.retryParked(ref), event)
    }

    func retryParked(_ ref: WorkRef) {
        guard let event = work.event(ref), event.fanOutPhase == .readingParked else { return shard.late() }
        readParked(event)
    }

    // MARK: Revokes

    /// A revoke replaces its original's alert, so it needs the original's collapse id.
    func readOriginal(of event: EventJob) { readOriginal(of: event, .original) }

    private func readOriginal(of event: EventJob, _ stage: Tag.Stage) {
        guard let target = event.subject.revoke?.targetMsgID else {
            return shard.mistake("the original is read of no revoke")
        }
        event.fanOutPhase = .readingOriginal
        do throws(RedisFault) {
            if stage == .original {
                try shard.store.collapseID(app: event.app.id, msgID: target, tag: event.tag(stage))
            } else {
                try shard.store.countGroupMarks(app: event.app.id, id: target, tag: event.tag(stage))
            }
        } catch {
            retryLater(.retryOriginal(event.ref), event)
        }
    }

    /// Its members may be marked in their common key, where no claim looks.
    private func didReadCollapseID(_ ref: WorkRef, _ collapseID: String?) {
        guard let event = work.event(ref), event.fanOutPhase == .readingOriginal else { return shard.late() }
        if collapseID == nil, event.hasMembers, !shard.store.client.isCluster {
            return readOriginal(of: event, .originalMarks)
        }
        didReadOriginal(ref, collapseID.map { .known($0) } ?? .unknown)
    }

    private func didReadOriginal(_ ref: WorkRef, _ original: CollapseID.Original) {
        guard let event = work.event(ref), event.fanOutPhase == .readingOriginal else { return shard.late() }
        event.failures = 0
        event.fanOutPhase = .ready
        event.original = original
    }

    private func didFailOriginal(_ tag: Tag, isAbsent: Bool) {
        if isAbsent {
            return tag.stage == .original ? didReadCollapseID(tag.ref, nil) : didReadOriginal(tag.ref, .unknown)
        }
        guard let event = work.event(tag.ref), event.fanOutPhase == .readingOriginal else { return shard.late() }
        retryLater(.retryOriginal(tag.ref), event)
    }

    func retryOriginal(_ ref: WorkRef) {
        guard let event = work.event(ref), event.fanOutPhase == .readingOriginal else { return shard.late() }
        readOriginal(of: event)
    }
}
