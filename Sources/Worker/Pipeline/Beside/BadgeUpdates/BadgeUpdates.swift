// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Payload
import PushCore
import Redis
import Telemetry

/// `clear_on_read`: a read that lowers the badge sends the new number, 0 included, to the devices that were pushed.
///
/// Changes with an ended update are in `done`, events with an ended part in `endedEvents`.
final class BadgeUpdates {
    let done = Tray<ChangeJob>()
    /// Accepted numbers of devices that other workers may push too.
    let accepted = Tray<AcceptedBadge>()
    /// Events with one ended part.
    let endedEvents = Tray<EventJob>()
    let shard: ShardContext
    let work: WorkTable
    private let sender: Sender
    private let recorder: Recorder
    /// By user, the update that further reads may join.
    private var joinable: [BadgeUpdate.Owner: BadgeUpdate] = [:]
    /// The open updates after revokes of each user.
    private var revokes: [BadgeUpdate.Owner: [BadgeUpdate]] = [:]
    /// Tokens of devices that get a number again.
    private var newest: Set<String> = []
    /// The process ends: pending updates are left to the next owner.
    private var isClosed = false
    /// Number of updates with records that go to other owners.
    private var goingCount = 0

    init(_ shard: ShardContext, _ work: WorkTable, sender: Sender, recorder: Recorder) {
        self.shard = shard
        self.work = work
        self.sender = sender
        self.recorder = recorder
    }

    /// A user-state change lowered the number: its offset waits for the pushes.
    func begin(after change: ChangeJob) {
        if isClosed { return }
        guard let app = change.app, let uid = change.uid else { return end(change) }
        if let waiting = joinable[BadgeUpdate.Owner(app: app.id, uid: uid)] {
            waiting.changes.append(change)
            waiting.eventID = change.eventID
            return
        }
        // Full, because APNs is away. Redis remembers that the number was not sent, and the user's next read sends it.
        guard !work.badgeUpdates.isFull else { return end(change) }
        let update = BadgeUpdate(app: app, uid: uid, eventID: change.eventID, changes: [change])
        work.insert(update)
        joinable[update.owner] = update
        shard.timers.schedule(.badgeUpdate(update.ref), dueNanos: shard.nowNanos &+ BadgeUpdate.waitNanos)
    }

    /// A revoke lowered the number of this recipient: its event is kept until the pushes have ended.
    func begin(after revoke: RecipientJob) {
        if isClosed { return }
        let app = revoke.event.app
        let owner = BadgeUpdate.Owner(app: app.id, uid: revoke.uid)
        if joinable[owner] == nil, work.badgeUpdates.isFull { return }
        let update = joinable[owner] ?? BadgeUpdate(app: app, uid: revoke.uid, eventID: revoke.event.id)
        if joinable[owner] == nil {
            work.insert(update)
            joinable[owner] = update
            shard.timers.schedule(.badgeUpdate(update.ref), dueNanos: shard.nowNanos &+ BadgeUpdate.waitNanos)
        }
        update.eventID = revoke.event.id
        if update.events.isEmpty { revokes[owner, default: []].append(update) }
        update.events.append(revoke.event)
        update.told = []
        revoke.event.openParts += 1
    }

    /// The alert of a revoke carried the number to a device: it gets no push of its own for that.
    func didTell(_ told: ToldBadge) {
        for update in revokes[told.owner] ?? [] where update.events.last === told.event {
            update.told.append(told.device)
        }
    }

    /// A number that is sent to its device again: one at a time per device.
    func begin(_ accepted: AcceptedBadge) {
        guard !work.badgeUpdates.isFull, newest.insert(accepted.token.record.hex).inserted else { return }
        let update = BadgeUpdate(accepted, nowNanos: shard.nowNanos)
        work.insert(update)
        sender.enter(update, 0)
    }

    /// - Returns: whether records' offsets wait for updates.
    func hasWork(where isWanted: (ChangeJob) -> Bool) -> Bool {
        work.badgeUpdates.contains { $0.changes.contains(where: isWanted) }
    }

    private func end(_ change: ChangeJob) {
        done.append(change)
        shard.requestTurn()
    }

    /// Reads the devices to update. From now on another read starts a new update.
    func start(_ ref: WorkRef) {
        guard let update = work.badgeUpdate(ref) else { return shard.noteLate() }
        if !mayUpdate(update), update.going == nil {
            return shard.timers.schedule(.badgeUpdate(ref), dueNanos: shard.nowNanos &+ Self.pauseNanos)
        }
        if joinable[update.owner] === update { joinable[update.owner] = nil }
        update.answers = Answers(2)
        ask(update) { (store) throws(RedisFault) in
            try store.readUser(app: update.app.id, uid: update.uid, tag: update.tag(.updateUser))
        }
        ask(update) { (store) throws(RedisFault) in
            try store.pushedDevices(app: update.app.id, uid: update.uid, tag: update.tag(.updateDevices))
        }
    }

    private static let pauseNanos: UInt64 = 500_000_000

    /// Redis has all changes of the user, and all messages that count.
    private func mayUpdate(_ update: BadgeUpdate) -> Bool {
        !shard.unstoredChanges.contains(UnstoredChanges.user(update.app.id, update.uid))
            && shard.isBadgeExact(app: update.app.id, uid: update.uid)
    }

    private func ask(_ update: BadgeUpdate, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(update, failed: true)
        }
    }

    func answered(_ update: BadgeUpdate, failed: Bool) {
        guard update.answers.take(failed: failed) else { return }
        guard !update.answers.hasFailed else { return retryLater(.badgeUpdate(update.ref), update) }
        update.failures = 0
        update.chooseDevices(nowNanos: shard.nowNanos)
        let departed = update.departed
        if !departed.isEmpty {
            try? shard.store.forgetPushed(
                app: update.app.id, uid: update.uid, devices: departed, tag: update.tag(.note))
        }
        if update.devices.isEmpty { return end(update) }
        for index in update.devices.indices { sender.enter(update, index) }
    }

    private func retryLater(_ item: DueItem, _ update: BadgeUpdate) {
        update.failures += 1
        shard.timers.schedule(item, dueNanos: shard.retryNanos(failures: update.failures))
    }

    // MARK: One device

    /// The device's turn has come, or its push waited in the client: reads the present number and the token's owner.
    func check(_ device: DeviceRef, ticket: PushTicket?) {
        let index = device.device
        guard let update = work.badgeUpdate(device.work), update.isPushing(index),
            let token = update.devices[index].push?.token
        else { return shard.noteLate() }
        update.devices[index].push?.check = SendCheck(ticket: ticket, answers: Answers(3), subject: .push)
        update.readings[index] = BadgeUpdate.Reading()
        if let newest = update.newest, newest.untilNanos <= shard.nowNanos { return stop(update, index, .expired) }
        do throws(RedisFault) {
            try shard.store.readBadge(
                app: update.app.id, uid: update.uid, baseTag: update.tag(.updateBase, index),
                sizeTag: update.tag(.updateSize, index))
            try shard.store.owner(app: update.app.id, token: token.record.hex, tag: update.tag(.updateOwner, index))
        } catch {
            // Answers to earlier queries find no waiting device.
            update.devices[index].push?.check?.answers = Answers()
            retryLater(.retryCheck(device), update)
        }
    }

    private func checked(
        _ update: BadgeUpdate, _ index: Int, failed: Bool = false, isOwned: Bool = true,
        _ note: (inout BadgeUpdate.Reading) -> Void = { _ in }
    ) {
        guard update.isPushing(index), var check = update.devices[index].push?.check, check.answers.awaited > 0 else {
            return shard.noteLate()
        }
        note(&update.readings[index])
        if !isOwned { check.facts.isTokenOwned = false }
        let isLast = check.answers.take(failed: failed)
        update.devices[index].push?.check = check
        if !isLast { return }
        if check.answers.hasFailed { return retryLater(.retryCheck(update.deviceRef(index)), update) }
        send(update, index, check)
    }

    private func send(_ update: BadgeUpdate, _ index: Int, _ check: SendCheck) {
        guard let due = update.devices[index].pushParts(), let client = update.app.client(for: due.token) else {
            return stop(update, index, .noToken)
        }
        let token = due.token.record
        if !check.facts.isTokenOwned { return stop(update, index, .tokenMoved) }
        guard let number = update.readings[index].number, !update.isTold(due.token.device) else {
            return stop(update, index, nil)
        }
        // It was so when the update began. The user's next read sends the number.
        if !mayUpdate(update) || shard.unstoredChanges.contains(UnstoredChanges.token(update.app.id, token.hex)) {
            update.isWithheld = true
            return stop(update, index, nil)
        }
        let badge = BadgeRule.alone(number, cap: update.app.policy.badgeCap)
        if let newest = update.newest, badge <= newest.pushed || sender.hasWaiting(for: update.deviceKey(index)) {
            return stop(update, index, .coalesced)
        }
        let patienceMs = update.newest == nil ? BadgeUpdate.patienceMs : BadgeUpdate.Newest.patienceMs
        let nowMs = shard.nowMs
        guard let device = DeviceToken(token.hex),
            let headers = try? PushHeaders(
                topic: token.topic, pushType: .alert, expirationSeconds: nowMs / 1000 + BadgeUpdate.storedSeconds,
                collapseID: BadgeUpdate.collapseID)
        else { return stop(update, index, .noToken) }
        update.devices[index].push?.badge = badge
        update.devices[index].push?.check = nil
        let push = Push(
            tag: update.tag(.push, index), token: device, headers: headers, id: due.id,
            payload: PayloadTemplate.badgeAlone(badge), expiresAtMs: nowMs + patienceMs, lane: .silent)
        if let ticket = check.ticket { return client.apns.renew(ticket, with: push) }
        sender.send(update, index, push, by: client)
    }

    /// The device is not updated.
    ///
    /// - Parameter reason: nil if there is no number to send, and no record.
    private func stop(_ update: BadgeUpdate, _ index: Int, _ reason: Reason?) {
        if let ticket = update.devices[index].push?.check?.ticket, !sender.takeBack(update, index, ticket) { return }
        end(update, index, .suppressed, reason?.rawValue)
    }

    /// APNs would never take the push.
    func didNotSend(_ update: BadgeUpdate, _ unsent: UnsentPush) {
        guard case .unfit(let fault) = unsent.cause else { return shard.mistake("an end that no badge update has") }
        shard.log.error(
            "cannot send an invalid badge update", ["fault": .string(fault.text), "app": .string(update.app.id)])
        end(update, unsent.device.device, .rejected, NoAnswer.unfit.rawValue)
    }

    /// APNs' answer. Nothing waits for the removal of a dead token: after a crash the next push is refused too.
    func didEnd(_ update: BadgeUpdate, _ push: EndedPush) {
        let index = Int(push.tag.index)
        guard update.isPushing(index), let ended = update.devices[index].pushParts() else { return shard.noteLate() }
        let ending = Ending(push.outcome, token: ended.token, isForced: false)
        end(update, index, ending.verdict, ending.reason) { record in
            record.label = ending.label
            record.apnsID = ending.apnsID
            record.status = ending.status
            record.attempts = push.attempts
            record.credential = push.credential
        }
        _ = recorder.removeIfDead(ending, of: ended.token, app: update.app, uid: update.uid, recipient: nil)
        guard ending.verdict == .accepted, !shard.share.isWhole, let badge = ended.badge else { return }
        accepted.append(
            AcceptedBadge(
                app: update.app, uid: update.uid, eventID: update.eventID, token: ended.token, badge: badge,
                asOfMs: update.newest?.asOfMs ?? shard.nowMs,
                mayHaveReport: update.readings[index].base?.hasReport ?? true, burst: nil))
    }

    private func end(
        _ update: BadgeUpdate, _ index: Int, _ verdict: Verdict, _ reason: String?,
        _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) {
        let left = update.devices[index].end()
        if left == .nothing { return shard.noteLate() }
        let device = update.devices[index]
        // The alerts' records contain their numbers. A repeated number has no record of its own.
        if update.newest == nil, let reason {
            var record = OutcomeRecord(uid: update.uid, device: device.route.device, verdict: verdict, reason: reason)
            record.pushID = device.push?.id
            record.badge = device.push?.badge
            record.latencyMs = shard.latencyMs(sinceKafkaMs: update.kafkaMs)
            fill(&record)
            if recorder.write(record, app: update.app, eventID: update.eventID, tag: update.tag(.updateRecord)) {
                update.unackedRecords += 1
            }
        }
        endIfComplete(update)
        if left == .openAndDeviceFree { sender.leaveQueue(device.queueKey) }
    }

    func didSettleRecord(_ ref: WorkRef) {
        guard let update = work.badgeUpdate(ref) else { return shard.noteLate() }
        update.unackedRecords -= 1
        endIfComplete(update)
    }

    private func endIfComplete(_ update: BadgeUpdate) {
        if update.isComplete { end(update) }
    }

    /// The number was sent: clears Redis' note that it was not, and settles the reads. Or it is left to other owners.
    private func end(_ update: BadgeUpdate) {
        if update.going != nil { goingCount -= 1 }
        if update.newest != nil {
            if let token = update.devices.first?.push?.token { newest.remove(token.record.hex) }
        } else if !update.isLeft, !update.isWithheld {
            try? shard.store.loweredBadgeSent(app: update.app.id, uid: update.uid, tag: Tag.noteBits)
        }
        if joinable[update.owner] === update { joinable[update.owner] = nil }
        if !update.events.isEmpty {
            revokes[update.owner]?.removeAll { $0 === update }
            if revokes[update.owner]?.isEmpty ?? false { revokes[update.owner] = nil }
        }
        work.remove(update)
        for change in update.changes { end(change) }
        for event in update.events { endedEvents.append(event) }
        shard.requestTurn()
    }

    // MARK: Hand-back

    /// These records go to other owners, and Redis still has the note that the number is owed. Pushes without a stream
    /// are left to those owners.
    func handBack(_ isGoing: (EventJob) -> Bool, changes isGoingChange: (ChangeJob) -> Bool) {
        work.badgeUpdates.forEach { update in
            let changes = update.changes.filter(isGoingChange)
            let events = update.events.filter(isGoing)
            if changes.isEmpty, events.isEmpty { return }
            if update.going == nil { goingCount += 1 }
            let before = update.going ?? ([], [])
            update.going = (before.changes + changes, before.events + events)
        }
        leaveUnsent()
    }

    /// From now on no update starts.
    func close() { isClosed = true }

    /// Hands back all pushes without a stream; also once a second, for those that APNs refused since.
    func leaveUnsent() {
        if goingCount == 0 { return }
        for device in sender.withdraw({ work.badgeUpdate($0)?.going != nil }) {
            if let update = work.badgeUpdate(device.work) { leave(update, device.device) }
        }
        var going: [BadgeUpdate] = []
        work.badgeUpdates.forEach { if $0.going != nil { going.append($0) } }
        for update in going {
            if update.devices.isEmpty { update.leave() }
            // If all are on streams or sent, the update ends normally.
            for index in update.devices.indices where !update.devices[index].isWithClient { leave(update, index) }
            endIfComplete(update)
        }
    }

    private func leave(_ update: BadgeUpdate, _ index: Int) {
        let left = update.devices[index].replace()
        if left == .nothing { return }
        update.leave()
        if left == .openAndDeviceFree { sender.leaveQueue(update.devices[index].queueKey) }
    }

    // MARK: Answers
    // Answers of Redis about badge updates.

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.noteLate() }
        let index = Int(tag.index)
        switch tag.question {
        case .updateUser:
            var recipient = Recipient(uid: update.uid)
            RecipientReplies.user(reply, into: &recipient)
            update.tokens = recipient.tokens
            answered(update, failed: false)
        case .updateDevices:
            update.pushed = StateStore.devices(reply)
            answered(update, failed: false)
        case .updateBase:
            let base = BadgeReading(base: reply)
            checked(update, index) { $0.base = base }
        case .updateSize:
            let size = reply.int64 ?? 0
            checked(update, index) { $0.size = size }
        case .updateOwner:
            guard update.isPushing(index), let token = update.devices[index].push?.token else {
                return shard.noteLate()
            }
            checked(update, index, isOwned: OwnerReply.allows(reply, uid: update.uid, token: token))
        default: break
        }
    }

    /// A key that can never be read counts as absent. Without the number nothing is pushed.
    func didFail(_ tag: Tag, isAbsent: Bool) {
        guard let update = work.badgeUpdate(tag.ref) else { return shard.noteLate() }
        switch tag.question {
        case .updateUser, .updateDevices: answered(update, failed: !isAbsent)
        case .updateOwner where isAbsent: checked(update, Int(tag.index), isOwned: false)
        case .updateBase where isAbsent, .updateSize where isAbsent: checked(update, Int(tag.index))
        default: checked(update, Int(tag.index), failed: true)
        }
    }
}
