// SPDX-License-Identifier: Apache-2.0
import Payload
import PushCore
import Redis
import Telemetry

/// The reads that an event needs before its recipients begin, one after another. `EventJob.fanOutPhase` names the present one.
extension FanOut {
    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .tokenOwner { return didReadOwner(tag, reply) }
        guard let event = reading(tag) else { return shard.late() }
        switch tag.question {
        case .members: didReadMembers(event, reply)
        case .groupSize: didReadSize(event, reply.int64)
        case .original: didReadKept(event, KeptOriginal(reply))
        case .originalMarks: didReadOriginal(event, StateStore.hasGroupMarks(reply) ? .known(nil) : .unknown)
        case .tries: didReadTries(event, TryQuestion(rawValue: Int(tag.index)), isThere: !reply.isNull)
        default: didReadParked(event, StateStore.parkedNote(reply))
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        if tag.question == .tokenOwner { return didFailOwner(tag, isAbsent: isAbsent) }
        guard let event = reading(tag) else { return shard.late() }
        switch tag.question {
        case .members where fault.isLasting:
            endMembers(event, fault, key: "group \(event.app.id):\(event.conversationID)")
        case .groupSize where isAbsent: didReadSize(event, nil)
        case .original where isAbsent: didReadKept(event, nil)
        case .originalMarks where isAbsent: didReadOriginal(event, .unknown)
        case .tries where isAbsent:
            didReadTries(event, TryQuestion(rawValue: Int(tag.index)), isThere: false)
        case .parkedBefore where isAbsent: didReadParked(event, nil)
        default: retryLater(event)
        }
    }

    /// The event that waits for this answer; nil if it has ended or gone on.
    private func reading(_ tag: Tag) -> EventJob? {
        guard let event = work.event(tag.ref) else { return nil }
        let phase: EventJob.FanOutPhase =
            switch tag.question {
            case .members: .readingPage
            case .groupSize: .readingSize
            case .original, .originalMarks: .readingOriginal
            case .tries: .readingTries
            default: .readingParked
            }
        return event.fanOutPhase == phase ? event : nil
    }

    /// Without an answer it is asked again later.
    private func ask(
        _ event: EventJob, _ phase: EventJob.FanOutPhase, _ send: (StateStore) throws(RedisFault) -> Void
    ) {
        event.fanOutPhase = phase
        do throws(RedisFault) { try send(shard.store) } catch { retryLater(event) }
    }

    func retryLater(_ event: EventJob) {
        event.failures += 1
        shard.timers.schedule(.retryRead(event.ref), dueNanos: shard.retryNanos(failures: Int(event.failures)))
    }

    func retryRead(_ ref: WorkRef) {
        guard let event = work.event(ref) else { return shard.late() }
        switch event.fanOutPhase {
        case .readingPage, .readingOwners: if !parkForChanges(event) { readPage(of: event) }
        case .readingSize: readSize(of: event)
        case .readingOriginal: readOriginal(of: event)
        case .readingParked: readParked(event)
        case .readingTries: readTries(of: event)
        case .ready: shard.late()
        }
    }

    // MARK: Pages

    func readPage(of event: EventJob) {
        if isBeforeChanges(event) {
            event.fanOutPhase = .readingPage
            return retryLater(event)
        }
        // Again after a fault: the note may be lost with the connection.
        if event.audience.isUnread { noteTry(of: event) }
        if let tokens = event.audience.tokenPage { return readOwners(of: event, tokens) }
        let (app, count) = (event.app.id, event.plan == nil ? shard.limits.memberPage : ChunkPlan.membersMax)
        ask(event, .readingPage) { (store) throws(RedisFault) in
            if let activity = event.audience.activity {
                try store.activityUsers(
                    app: app, activityID: activity, after: event.audience.lastUser, count: count,
                    tag: event.tag(.members))
            } else if let group = event.audience.group,
                let cursor = event.audience.beginPage(store.memberServer(app: app, group: group))
            {
                try store.members(app: app, group: group, cursor: cursor, count: count, tag: event.tag(.members))
            }
        }
    }

    private func didReadMembers(_ event: EventJob, _ reply: borrowing RedisReply) {
        if event.audience.activity != nil {
            let users = StateStore.activityUsers(reply)
            event.audience.take(users: users, isLast: users.count < shard.limits.memberPage)
            return event.didRead()
        }
        guard let page = MemberPage(reply) else { return retryLater(event) }
        event.didRead()
        if page.emptyCount > 0 { shard.metrics.emptyMembers.add(UInt64(page.emptyCount)) }
        pages &+= 1
        let isForgotten = TestBreak.isOn(.forgetPage) && pages.isMultiple(of: 2)
        event.audience.take(isForgotten ? [] : page.members, cursor: page.cursor)
        // No recipient is started before the number of members is known.
        if event.audience.wantsPage, !event.isSized { readSize(of: event) }
    }

    private func readSize(of event: EventJob) {
        guard let group = event.audience.group else { return shard.mistake("the size is read of no group") }
        ask(event, .readingSize) { (store) throws(RedisFault) in
            try store.memberCount(app: event.app.id, group: group, tag: event.tag(.groupSize))
        }
    }

    private func didReadSize(_ event: EventJob, _ count: Int64?) {
        event.didRead()
        event.isSized = true
        if planner.divides(members: Int(clamping: count ?? 0), of: event) { event.plan = ChunkPlan() }
    }

    /// The members' key can never be read: one record says so.
    private func endMembers(_ event: EventJob, _ fault: RedisFault, key: String) {
        shard.writes.report(
            fault, "the members of a group cannot be read: nobody gets the message", key: key,
            nowNanos: shard.nowNanos)
        event.fanOutPhase = .ready
        startForNobody(event, .noToken)
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
        let (app, id, tag) = (event.app.id, event.subject.id, event.tag(.tries, question.rawValue))
        ask(event, .readingTries) { (store) throws(RedisFault) in
            switch question {
            case .note: try store.readGroupMarks(app: app, uid: "", id: id, tag: tag)
            case .nobody: try store.readMark(app: app, uid: "", kind: event.subject.kind, id: id, tag: tag)
            }
        }
    }

    private func didReadTries(_ event: EventJob, _ question: TryQuestion?, isThere: Bool) {
        if event.isHandedBack { return shard.late() }
        if question == .note, isThere { return ask(.nobody, event) }
        event.didRead()
        if question == .nobody, !isThere {
            event.wasTried = true
        } else {
            startForNobody(event, .expired)
        }
    }

    // MARK: Parked conversations

    /// An app over its share may have parked an earlier event of the conversation.
    func readParkedIfShared(_ event: EventJob) {
        if shard.limits.isShared, event.hasManyRecipients, event.parked == nil, event.chunkPart == nil {
            readParked(event)
        }
    }

    /// Reads whether an earlier event of the conversation is parked with all its recipients.
    private func readParked(_ event: EventJob) {
        ask(event, .readingParked) { (store) throws(RedisFault) in
            try store.readParked(
                app: event.app.id, conversation: event.parkedConversation, tag: event.tag(.parkedBefore))
        }
    }

    private func didReadParked(_ event: EventJob, _ note: ParkedNote?) {
        event.didRead()
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

    // MARK: Unstored changes

    /// Its recipients follow from tokens, or from an activity, of which a change is read and not stored.
    private func isBeforeChanges(_ event: EventJob) -> Bool {
        let (changes, app) = (shard.unstoredChanges, event.app.id)
        if changes.isEmpty { return false }
        if let tokens = event.audience.tokenPage {
            return tokens.contains { changes.contains(UnstoredChanges.token(app, $0)) }
        }
        return event.audience.activity.map { changes.contains(UnstoredChanges.activity(app, $0)) } ?? false
    }

    /// After a few tries the event is parked, unless some of its recipients have begun.
    private func parkForChanges(_ event: EventJob) -> Bool {
        guard isBeforeChanges(event), event.failures >= Self.changeTriesMax, !event.hasRecipients,
            event.raw.count <= ParkedRecord.rawMax, open.contains(where: { $0 === event })
        else { return false }
        event.didRead()
        open.removeAll { $0 === event }
        if var record = event.parked?.record {
            record.dueMs = shard.steadyMs &+ Self.changesMs
            event.parting = [record]
        } else {
            event.isHandedBack = true
            behind.append((event, Self.changesMs))
        }
        event.audience.abandon()
        endAudience(event)
        shard.requestTurn()
        return true
    }

    private static let changeTriesMax = 3
    private static let changesMs: Int64 = 5_000

    // MARK: Revokes

    /// A revoke replaces its original's alert, so it needs the original's collapse id. A group's scheduled message may have been
    /// revoked for members that came later.
    func readOriginal(of event: EventJob) {
        let target = event.subject.revoke?.targetMsgID ?? event.msgID
        ask(event, .readingOriginal) { (store) throws(RedisFault) in
            try store.readOriginal(app: event.app.id, msgID: target, tag: event.tag(.original))
        }
    }

    /// Its members may be marked in their common key, where no claim looks.
    private func didReadKept(_ event: EventJob, _ kept: KeptOriginal?) {
        guard event.isRevoke else {
            event.isRevokedBefore = kept?.isRevoked ?? false
            event.didRead()
            return readParkedIfShared(event)
        }
        if let kept {
            event.isRevokedBefore = kept.waits(nowMs: shard.nowMs)
            if event.isRevokedBefore { noteRevokedBefore(event, kept) }
            return didReadOriginal(event, .known(kept.collapseID))
        }
        guard event.hasMembers, !shard.store.client.isCluster, let target = event.subject.revoke?.targetMsgID else {
            return didReadOriginal(event, .unknown)
        }
        ask(event, .readingOriginal) { (store) throws(RedisFault) in
            try store.countGroupMarks(app: event.app.id, id: target, tag: event.tag(.originalMarks))
        }
    }

    /// Members who join the group before the message's time have no mark of the revoke. The note tells them.
    private func noteRevokedBefore(_ event: EventJob, _ kept: KeptOriginal) {
        guard event.hasMembers, event.audience.group != nil || event.audience.isChunk,
            let target = event.subject.revoke?.targetMsgID, !kept.isRevoked, let sendAtMs = kept.sendAtMs
        else { return }
        var revoked = kept
        revoked.isRevoked = true
        // If it is lost, those who join get the message.
        try? shard.store.keepOriginal(
            app: event.app.id, msgID: target, revoked, expireAtMs: sendAtMs &+ InputLimit.dayMs, nowMs: shard.nowMs,
            tag: Tag.noteBits)
    }

    private func didReadOriginal(_ event: EventJob, _ original: CollapseID.Original) {
        event.didRead()
        event.original = original
        readParkedIfShared(event)
    }
}
