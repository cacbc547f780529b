// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// From a route to an open stream: the device's queue, the app's rate, the check before sending, the APNs clients.
///
/// Outcomes are in `outcomes`, pushes that are not sent in `unsent`, devices with a push to make in `ready`.
final class Sender {
    let ready = Tray<DeviceRef>()
    let outcomes = Tray<EndedPush>()
    let unsent = Tray<UnsentPush>()
    /// Devices of badge updates that must be checked before they are sent. The ticket is that of a push in an APNs client.
    let updateChecks = Tray<(device: DeviceRef, ticket: PushTicket?)>()
    let shard: ShardContext
    let work: WorkTable
    var apps: [AppContext]
    var queues: DeviceQueues<DeviceRef>
    /// Work that this shard parked recently.
    private let parked: ParkedDevices
    /// Alerts that extensions added 1 for (`RecipientJob.addedAlert`): their marks may not be written when their revoke is claimed.
    var addedAlerts = RecentKeys<UInt64>()
    /// Pushes that are made, and not given to their APNs clients yet.
    private let made = Tray<MadePush>()

    /// Maximum age of the last check; shorter than any move of a phone from one account to another.
    static let checkAfterNanos: UInt64 = 100_000_000
    /// A claim with a slower answer is too old for a push. Longer than `checkAfterNanos`: a slow Redis would otherwise
    /// get twice the queries.
    static let answerNanos: UInt64 = 1_000_000_000
    /// A longer delay requested by APNs causes parking.
    static let holdNanos: UInt64 = 10_000_000_000

    /// - Parameters:
    ///   - occupancy: devices with a push in flight in the process; nil with a single shard.
    ///   - index: the shard's number.
    ///   - parked: work that this shard parked recently.
    init(
        _ shard: ShardContext, _ work: WorkTable, apps: [AppContext], occupancy: DeviceOccupancy?,
        index: Int, parked: ParkedDevices
    ) {
        self.parked = parked
        queues = DeviceQueues(sharing: occupancy, shard: index)
        self.shard = shard
        self.work = work
        self.apps = apps
    }

    func start() {
        for app in apps { app.connect(delegate: self) }
    }

    func add(_ app: AppContext) {
        apps.append(app)
        app.connect(delegate: self)
    }

    func close() {
        for app in apps {
            for client in app.clients {
                client.apns.delegate = nil
                client.apns.close()
            }
        }
        queues.close()
    }

    /// Pushes that wait for streams, without those of apps over their share; their further events are parked.
    var pushesAhead: Int {
        var count = 0
        for app in apps where app.inHand.blockedNanos == nil { count += app.pushesAhead }
        return count
    }

    /// Why pushes wait for APNs, and whether all waiting pushes do so for it.
    var waitsForAPNs: (causes: Set<Backpressure.Cause>, isAll: Bool) {
        let clients = apps.flatMap(\.clients).map(\.apns)
        let causes = Set(clients.compactMap(Backpressure.Cause.init(of:)))
        return (causes, !causes.isEmpty && !clients.contains { !$0.isHeldUp && $0.waiting > 0 })
    }

    /// Pushes that wait for another one of their device.
    var waitingForDevice: Int { queues.waitingCount }

    /// Devices with a push in flight or in a queue.
    var busyDevices: Int { queues.busyCount }

    /// A push of the device is queued or in flight in this process.
    func isBusy(_ key: UInt64) -> Bool { queues.isBusy(key) }

    /// A push of the device is queued or in flight in this shard.
    func hasPushes(_ job: RecipientJob, device: String) -> Bool {
        queues.isBusyHere(DeviceKey.make(app: job.event.app.id, uid: job.uid, device: device))
    }

    /// The push's number was read again: those that wait behind it have older ones.
    func didCheck(_ key: UInt64) { queues.didCheck(key, atNanos: shard.nowNanos) }

    /// Another push of this shard waits behind the device's push in flight.
    func hasWaiting(for key: UInt64) -> Bool { queues.hasWaiting(key) }

    // MARK: The device's queue and the app's rate

    /// Sends the push to this device when the device is free.
    ///
    /// - Parameter claimedNanos: time of the claim query that found nothing against it (monotonic). With 0, or after
    ///   too long a time, it is checked first. An update of a Live Activity always is: an end may have been accepted since.
    /// - prefix: of the recipient's push ids, if the caller has it.
    func enqueue(
        _ job: RecipientJob, _ index: Int, to token: BoundToken, prefix: PushIDPrefix? = nil, badge: Int64?,
        mayHaveReport: Bool = true, claimedNanos: UInt64, merged: MergedPush? = nil
    ) {
        let now = shard.nowNanos
        let isFresh = now &- claimedNanos < Self.answerNanos && job.event.updatedActivityID == nil
        job.devices[index].enqueue(
            DevicePush(
                token: token, id: (prefix ?? job.pushIDPrefix).id(tokenHex: token.record.hex), badge: badge,
                mayHaveReport: mayHaveReport, startedNanos: now,
                checkedNanos: isFresh ? now : 0, merged: merged))
        if job.devices[index].inheritsTurn {
            job.devices[index].inheritsTurn = false
            return turnCame(job, index)
        }
        enter(job, index)
    }

    /// The push of a device waits for its turn.
    func enter(_ job: PushJob, _ index: Int) {
        let key = job.deviceKey(index)
        job.devices[index].queueKey = key
        if queues.enter(key, job.deviceRef(index)) { turnCame(job, index) }
    }

    /// The device's turn has come: at the pace of `limits.rate`.
    private func turnCame(_ job: PushJob, _ index: Int) {
        if job.devices[index].resume() {
            return check(job.deviceRef(index), ticket: job.devices[index].push?.check?.ticket)
        }
        job.devices[index].turnCame()
        // The number may be the older one: the push is claimed again before it goes.
        if queues.mayShowNumber(job.devices[index].queueKey, readSince: job.readNanos) {
            job.devices[index].push?.checkedNanos = 0
        }
        let (app, device) = (job.app, job.deviceRef(index))
        // The common case continues directly.
        if app.paced.isEmpty, app.rate.isUnlimited { return makeReady(device) }
        if app.paced.isEmpty {
            guard let dueNanos = app.rate.take(nowNanos: shard.nowNanos) else { return makeReady(device) }
            pace(app, dueNanos)
        }
        app.paced.append(device)
    }

    /// Its push is made and sent in this turn, together with all others of the turn.
    func makeReady(_ device: DeviceRef) {
        ready.append(device)
        shard.requestTurn()
    }

    /// Several go at once: each pause is long enough for a few.
    private func pace(_ app: AppContext, _ dueNanos: UInt64) {
        shard.timers.schedule(.pace(app), dueNanos: max(dueNanos, shard.nowNanos &+ 5_000_000))
    }

    /// Sends pushes that waited for `limits.rate`, as far as allowed.
    func goOn(_ app: AppContext) {
        var gone = 0
        while gone < app.paced.count {
            if let dueNanos = app.rate.take(nowNanos: shard.nowNanos) {
                pace(app, dueNanos)
                break
            }
            gone += 1
            makeReady(app.paced[gone - 1])
        }
        app.paced.removeFirst(gone)
    }

    /// The device is free: its next push goes.
    func leaveQueue(_ key: UInt64) {
        if queues.leave(key) { serveQueues() }
    }

    /// Pushes with devices that are free now.
    private func serveQueues() {
        while let turn = queues.nextTurn() {
            guard let job = work.pushJob(turn.item.work), job.isPushing(turn.item.device) else {
                queues.pass(turn)
                continue
            }
            turnCame(job, turn.item.device)
        }
        if queues.hasLeft { shard.requestTurn() }
    }

    /// Another shard, or this one, left awaited devices.
    func didVacate(_ cells: [DeviceOccupancy.Cell]) {
        if queues.vacate(cells) { serveQueues() }
    }

    /// Once per turn: notifies all shards of awaited devices that were left here.
    func notifyVacated() { queues.notifyVacated() }

    // MARK: Making and sending

    /// Makes the push of the next device in turn, or checks it first. `sendMade` gives it to the APNs client: the code of both does
    /// not fit the processor's first cache.
    func make(_ device: DeviceRef) {
        guard let job = work.recipient(device.work) else { return updateChecks.append((device, nil)) }
        guard device.device < job.devices.count,
            job.devices[device.device].phase == .due, let due = job.devices[device.device].pushParts()
        else { return shard.noteLate() }
        let index = device.device
        guard job.event.expiresAtMs > shard.nowMs else { return drop(device, .check(.stop(.expired))) }
        let client = job.event.app.client(for: due.token)
        // Only so many go to a client that is held up.
        if client?.heldUpNanos != nil { sendMade() }
        if let cause = causeToPark(job, index, client) { return drop(device, cause) }
        if shard.nowNanos &- due.checkedNanos > Self.checkAfterNanos, !TestBreak.isOn(.noRecheck) {
            return check(job, index, ticket: nil)
        }
        guard let client else { return drop(device, .check(.stop(.noToken))) }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, index, ticket: nil) == .kept { return }
        if job.event.app.backgroundPerHour > 0, job.event.isBackground, takePlace(job, index) == .kept { return }
        shard.enter(.render)
        guard let push = push(for: job, index, due) else {
            return drop(device, .check(.stop(.payloadTooLarge)))
        }
        made.append(MadePush(device: device, client: client, push: push))
    }

    /// The push of a badge update is made: it leaves in this turn.
    func send(_ update: BadgeUpdate, _ index: Int, _ push: Push, by client: AppContext.Client) {
        made.append(MadePush(device: update.deviceRef(index), client: client, push: push))
        shard.requestTurn()
    }

    /// Gives the made pushes to the APNs clients.
    func sendMade() {
        shard.enter(.send)
        made.takeAll { send($0) }
    }

    private func send(_ made: MadePush) {
        let index = made.device.device
        guard let job = work.pushJob(made.device.work), index < job.devices.count,
            job.devices[index].phase == .due
        else { return shard.noteLate() }
        switch made.client.apns.send(made.push, canRenew: true) {
        case .taken:
            job.devices[index].send()
            job.leaveContentIfSent()
        case .held:
            job.devices[index].send()
            backOff(made.device)
        case .full: made.client.stalled.append(made.device)
        // The process ends: the record is not settled and comes again.
        case .closed: break
        case .unfit(let fault): drop(made.device, .unfit(fault))
        }
    }

    /// The reason for parking the push instead of sending it; nil if it goes.
    private func causeToPark(_ job: RecipientJob, _ index: Int, _ client: AppContext.Client?) -> UnsentPush.Cause? {
        guard job.mayPark else { return nil }
        if job.devices[index].parksAtItsTurn { return .park(.behind, dueMs: shard.steadyMs, client: nil) }
        if !parked.isEmpty,
            let dueMs = parked.dueMs(
                job.devices[index].queueKey, before: job, nowMs: shard.steadyMs,
                mayHoldWork: shard.writes.mayHoldWork(nowNanos: shard.nowNanos))
        {
            return .park(.behind, dueMs: dueMs, client: nil)
        }
        guard let client, client.heldUpNanos != nil,
            client.apns.queued >= shard.limits.probesMax,
            client.isInTrouble(shard.limits, nowNanos: shard.nowNanos)
        else { return nil }
        return .park(client.trouble, dueMs: shard.steadyMs, client: client.name)
    }

    func drop(_ device: DeviceRef, _ cause: UnsentPush.Cause) {
        unsent.append(UnsentPush(device: device, cause: cause))
        shard.requestTurn()
    }

    /// - Returns: nil if too large, or with invalid headers.
    ///
    /// - Parameter due: of the device.
    func push(for job: RecipientJob, _ index: Int, _ due: PushParts) -> Push? {
        let (event, token) = (job.event, due.token)
        job.needContent(shard.reader)
        if let target = event.subject.revoke?.targetMsgID, addedAlerts.contains(job.addedAlert(index, target)) {
            job.addedBy.insert(token.device)
        }
        guard let content = event.content, let device = DeviceToken(token.record.hex),
            let headers = content.headers(
                topic: token.record.topic, isOriginalUnknown: job.flags.contains(.originalUnknown), due.merged),
            let payload = content.payload(
                for: job, token: token, badge: due.badge, id: due.id,
                mergedCount: due.merged?.count ?? event.digest?.count ?? 0)
        else { return nil }
        return Push(
            tag: job.tag(.push, index), token: device, headers: headers, id: due.id,
            payload: payload, expiresAtMs: event.expiresAtMs, lane: event.lane,
            isSuspect: event.app.suspects.isSuspect(boundMs: token.record.boundMs, nowMs: shard.nowMs))
    }

    /// The device backs off: nothing of it is in flight, so that the next push may come and replace this one. A badge update
    /// keeps its device.
    private func backOff(_ device: DeviceRef) {
        if work.badgeUpdate(device.work) != nil { return }
        guard let job = work.recipient(device.work), device.device < job.devices.count,
            job.devices[device.device].backOff()
        else { return shard.noteLate() }
        leaveQueue(job.devices[device.device].queueKey)
    }

    // MARK: Hand-back

    /// Takes back pushes that are in the APNs clients without a stream. The caller ends or leaves the devices.
    func withdraw(_ isGoing: (WorkRef) -> Bool) -> [DeviceRef] {
        var withdrawn: [DeviceRef] = []
        for app in apps {
            for client in app.clients { withdrawn += withdraw(from: client) { isGoing($0.work) } }
        }
        return withdrawn
    }

    func withdraw(from client: AppContext.Client, _ isGoing: (DeviceRef) -> Bool) -> [DeviceRef] {
        let pushes = client.apns.withdrawUnsent { Tag($0).map { isGoing($0.device) } ?? false }
        return pushes.compactMap { Tag($0.tag)?.device }
    }

    /// Takes back the checked push of a ticket, with the number of its attempts. Returns false if it has ended in the client:
    /// its outcome gives the result.
    func takeBack(_ job: PushJob, _ index: Int, _ ticket: PushTicket) -> Bool {
        guard let token = job.devices[index].push?.token, let client = job.app.client(for: token) else {
            return true
        }
        job.devices[index].push?.attempts = Int16(clamping: client.apns.attempts(of: ticket))
        return client.apns.withdraw(ticket)
    }

    // MARK: Check
    // Step 15 for a push that had to wait: behind another of its device, for `limits.rate`, or in the APNs client.
    //
    // The claim's facts are old then: the message may be read or revoked, the token another user's, the badge another
    // number. An immediate push needs no check.

    /// Claims again, which counts nothing twice, and asks for the token's owner. For a connection without a timely ack,
    /// it also asks for a later ack.
    func check(_ job: RecipientJob, _ index: Int, ticket: PushTicket?) {
        guard index < job.devices.count, let token = job.devices[index].push?.token else {
            return shard.mistake("a check of a device without a push")
        }
        let asksAcks = !job.silentConnections.isEmpty
        // A failed check may have read a newer number already.
        let subject =
            job.devices[index].push?.check?.subject ?? SendCheck.Subject(badge: job.devices[index].push?.badge)
        let activity = job.event.updatedActivityID
        // A channel has no owner.
        let asksOwner = !job.event.isBroadcast
        job.devices[index].push?.check = SendCheck(
            ticket: ticket,
            answers: Answers(1 + (asksOwner ? 1 : 0) + (asksAcks ? 1 : 0) + (activity == nil ? 0 : 1)),
            subject: subject)
        let app = job.event.app.id
        if let activity {
            ask(job, index) { (store) throws(RedisFault) in
                try store.activityState(
                    app: app, uid: job.uid, activityID: activity, tag: job.tag(.checkActivity, index))
            }
        }
        ask(job, index) { (store) throws(RedisFault) in
            try store.claim(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.checkClaim, index))
        }
        if asksOwner {
            ask(job, index) { (store) throws(RedisFault) in
                try store.owner(app: app, token: token.record.hex, tag: job.tag(.checkOwner, index))
            }
        }
        if !asksAcks { return }
        ask(job, index) { (store) throws(RedisFault) in
            try store.acks(app: app, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.checkAcks, index))
        }
    }

    private func ask(_ job: RecipientJob, _ index: Int, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, index, failed: true)
        }
    }

    /// Checks a device again after Redis could not answer.
    func retryCheck(_ device: DeviceRef) {
        guard let job = work.pushJob(device.work), job.isPushing(device.device) else { return shard.noteLate() }
        check(device, ticket: job.devices[device.device].push?.check?.ticket)
    }

    /// Checks a recipient's push, and leaves that of a badge update to `BadgeUpdates`.
    private func check(_ device: DeviceRef, ticket: PushTicket?) {
        if let job = work.recipient(device.work) { return check(job, device.device, ticket: ticket) }
        updateChecks.append((device, ticket))
        shard.requestTurn()
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        let index = Int(tag.index)
        guard let job = work.recipient(tag.ref), index < job.devices.count, let token = job.devices[index].push?.token
        else { return shard.noteLate() }
        switch tag.question {
        case .hour: didTakePlace(job, index, reply.int64 ?? 0)
        case .checkOwner:
            let standing = OwnerReply.standing(reply, uid: job.uid, token: token)
            answered(job, index) { check in
                check.facts.isTokenOwned = standing != .moved
                check.isRebound = standing == .rebound || standing == .refused
            }
        case .checkActivity:
            let isOver = isOver(job.event, ActivityState(reply), token)
            answered(job, index) { $0.facts.isActivityOver = isOver }
        case .checkAcks:
            let isAcknowledged = StateStore.devices(reply).containsSame(job.devices[index].route.device)
            answered(job, index) { $0.isAcknowledged = isAcknowledged }
        default:
            guard let claim = ClaimReply(reply) else { return answered(job, index, failed: true) }
            // The script has marked it, unless it was only asked to peek.
            if job.devices[index].push?.check?.isPeek == false { job.noteMark() }
            job.note(claim, isFirst: false)
            let isExact =
                shard.unstoredCounts.isEmpty || shard.isBadgeExact(app: job.event.app.id, uid: job.uid)
            job.devices[index].push?.badge = isExact ? job.badge(claim.badge, isLowered: claim.lowered) : nil
            job.devices[index].push?.mayHaveReport = claim.hasReport
            let mark = claim.state == .ended && reply.count > 3 ? PairMark.counts(reply[3]) : nil
            let outcome = job.outcome(ofDevice: index, in: mark)
            answered(job, index) { check in
                if claim.state == .ended { check.subject = outcome.map { .counted($0) } ?? .ended }
                check.facts.isRead = claim.isRead
                check.facts.isRevoked = claim.isRevoked
            }
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        guard let job = work.recipient(tag.ref) else { return shard.noteLate() }
        let index = Int(tag.index)
        if tag.question == .hour { return didNotTakePlace(job, index, fault, isAbsent: isAbsent) }
        guard index < job.devices.count, let check = job.devices[index].push?.check else { return shard.noteLate() }
        switch tag.question {
        case .checkClaim where fault.refusesWrite && !check.isPeek:
            // A claimed push needs no other claim; only its number is unknown.
            shard.writes.refused(fault, nowNanos: shard.nowNanos)
            peek(job, index)
        // A permanently unreadable key does not prevent the push, except for the token's owner.
        case .checkOwner where isAbsent:
            answered(job, index) { $0.facts.isTokenOwned = false }
        case .checkClaim where fault.isLasting, .checkAcks where isAbsent, .checkActivity where isAbsent:
            answered(job, index)
        default: answered(job, index, failed: true)
        }
    }

    /// A change of the user or of the token is read and not stored: the push is parked, or checked again later.
    func waitForChanges(_ job: RecipientJob, _ index: Int, ticket: PushTicket?) -> Passage {
        let changes = shard.unstoredChanges
        guard let token = job.devices[index].push?.token,
            changes.contains(UnstoredChanges.user(job.event.app.id, job.uid))
                || changes.contains(UnstoredChanges.token(job.event.app.id, token.record.hex))
        else { return .goesOn }
        guard job.mayPark else {
            shard.timers.schedule(.retryCheck(job.deviceRef(index)), dueNanos: shard.retryNanos(failures: 1))
            return .kept
        }
        job.devices[index].push?.check = nil
        stop(job, index, ticket, .park(.behind, dueMs: shard.steadyMs &+ Self.changesMs, client: nil))
        return .kept
    }

    private static let changesMs: Int64 = 5_000

    private func isOver(_ event: EventJob, _ state: ActivityState, _ token: BoundToken) -> Bool {
        guard let action = event.activity?.action else { return false }
        var state = state
        if state.startedMs == nil { state.startedMs = token.record.boundMs }
        return state.isOver(for: action, now: shard.nowMs)
    }

    private func peek(_ job: RecipientJob, _ index: Int) {
        job.devices[index].push?.badge = nil
        job.devices[index].push?.check?.isPeek = true
        ask(job, index) { (store) throws(RedisFault) in
            try store.peek(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.checkClaim, index))
        }
    }

    /// One of the answers.
    private func answered(
        _ job: RecipientJob, _ index: Int, failed: Bool = false, _ note: (inout SendCheck) -> Void = { _ in }
    ) {
        guard index < job.devices.count, var check = job.devices[index].push?.check, check.answers.awaited > 0 else {
            return shard.noteLate()
        }
        note(&check)
        let isLast = check.answers.take(failed: failed)
        job.devices[index].push?.check = check
        if !isLast { return }
        if !job.isPushing(index) { return shard.noteLate() }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, index, ticket: check.ticket) == .kept { return }
        let verdict = check.verdict(expireAtMs: job.event.expiresAtMs, nowMs: shard.nowMs)
        switch verdict {
        case .askAgain:
            shard.timers.schedule(.retryCheck(job.deviceRef(index)), dueNanos: shard.retryNanos(failures: 1))
        case .send:
            job.devices[index].push?.check = nil
            job.devices[index].push?.checkedNanos = shard.nowNanos
            didCheck(job.devices[index].queueKey)
            goOn(job, index, check)
        case .stop, .acknowledged, .endedElsewhere, .decideAgain:
            job.devices[index].push?.check = nil
            stop(job, index, check.ticket, .check(verdict))
        }
    }

    /// Nothing prevents it: on to the client, or inside it; rendered again if the number has changed.
    func goOn(_ job: RecipientJob, _ index: Int, _ check: SendCheck) {
        guard let ticket = check.ticket else { return makeReady(job.deviceRef(index)) }
        guard let due = job.devices[index].pushParts(), let client = job.event.app.client(for: due.token) else {
            return stop(job, index, ticket, .check(.stop(.noToken)))
        }
        if SendCheck.Subject(badge: due.badge) == check.subject, !client.apns.lacksContent(ticket) {
            client.apns.confirm(ticket)
            return job.leaveContentIfSent()
        }
        guard let push = push(for: job, index, due) else {
            return stop(job, index, ticket, .check(.stop(.payloadTooLarge)))
        }
        client.apns.renew(ticket, with: push)
        job.leaveContentIfSent()
    }

    private func stop(_ job: RecipientJob, _ index: Int, _ ticket: PushTicket?, _ cause: UnsentPush.Cause) {
        if let ticket, !takeBack(job, index, ticket) { return }
        drop(job.deviceRef(index), cause)
    }

    // MARK: Hour
    // `limits.background_per_hour`: a background push takes a place in its device's hour just before it is made. One without a place
    // is parked until the next hour, and the newest of those goes then for all of them.

    /// - Returns: `.kept` if the push waits for the answer of Redis.
    func takePlace(_ job: RecipientJob, _ index: Int) -> Passage {
        guard let push = job.devices[index].push, !push.hasPlace, let token = push.token else { return .goesOn }
        let waited = job.parking?.returned.containsSame(token.device) ?? false
        do throws(RedisFault) {
            try shard.store.takePlace(
                app: job.event.app.id, uid: job.uid, device: token.device, push.id, sentMs: job.event.sentMs,
                limit: job.event.app.backgroundPerHour, hasWaited: waited, nowMs: shard.nowMs,
                tag: job.tag(.hour, index))
        } catch {
            didNotTakePlace(job, index, error, isAbsent: false)
        }
        return .kept
    }

    private func didTakePlace(_ job: RecipientJob, _ index: Int, _ answer: Int64) {
        guard job.devices[index].phase == .due else { return shard.noteLate() }
        switch HourAnswer(answer) {
        case .merged: drop(job.deviceRef(index), .check(.stop(.coalesced)))
        case .wait(let ms) where job.mayPark:
            drop(job.deviceRef(index), .park(.background, dueMs: shard.steadyMs &+ ms, client: nil))
        // The topic does not take it, and memory is not for an hour.
        case .place, .wait: go(job, index)
        }
    }

    /// The limit is not worth a push: without a count it goes.
    private func didNotTakePlace(_ job: RecipientJob, _ index: Int, _ fault: RedisFault, isAbsent: Bool) {
        guard index < job.devices.count, job.devices[index].phase == .due else { return shard.noteLate() }
        if isAbsent || fault.isLasting { return go(job, index) }
        if fault.refusesWrite {
            shard.writes.refused(fault, nowNanos: shard.nowNanos)
            return go(job, index)
        }
        shard.timers.schedule(.retryCheck(job.deviceRef(index)), dueNanos: shard.retryNanos(failures: 1))
    }

    private func go(_ job: RecipientJob, _ index: Int) {
        job.devices[index].push?.hasPlace = true
        makeReady(job.deviceRef(index))
    }

    // MARK: Parking
    // Pushes that wait too long for a client or for `limits.rate`: they are parked.

    /// Once a second: parks pushes that have waited too long in a client with a problem, or for `limits.rate`.
    ///
    /// - Parameter full: partitions of the events topic with full windows while several apps have records in them, and the app with
    ///   most of the work: its waiting pushes are parked at once.
    func parkWhatWaits(_ full: FullPartitions?) {
        for app in apps {
            for client in app.clients { client.noteHeldUp(nowNanos: shard.nowNanos) }
        }
        parkOverdue(full)
    }

    /// Several times a second: some of them, so that other pushes do not wait for the rest.
    func parkOverdue(_ full: FullPartitions? = nil) {
        let now = shard.nowNanos
        for app in apps {
            for client in app.clients {
                let isInTrouble = client.isInTrouble(shard.limits, nowNanos: now)
                // For a client that is only slow: if other apps wait behind its records.
                let patience = shard.limits.patienceNanos * (isInTrouble ? 1 : 2)
                if isInTrouble || (shard.limits.isShared && client.apns.queued > 0) {
                    var left = Self.parkedPerLook
                    let overdue = withdraw(from: client) { device in
                        guard left > 0, isOverdue(device, patience, full) else { return false }
                        left -= 1
                        return true
                    }
                    park(overdue, of: client, isInTrouble)
                }
                guard isInTrouble else { continue }
                park(Self.take(from: &client.stalled) { work.recipient($0.work) != nil }, of: client, true)
            }
            parkPaced(app, full)
        }
    }

    /// Several times a second while Redis refuses writes: pushes that wait for a stream or for `limits.rate` do not keep their
    /// event open, where others of it may be accepted.
    func parkUnclaimed() {
        for app in apps {
            for client in app.clients where client.apns.queued > 0 {
                let isInTrouble = client.isInTrouble(shard.limits, nowNanos: shard.nowNanos)
                park(withdraw(from: client, isUnclaimed), of: client, isInTrouble)
            }
            dropPaced(app, isUnclaimed)
        }
    }

    private func isUnclaimed(_ device: DeviceRef) -> Bool {
        guard isOverdue(device, Self.unclaimedNanos, nil), let job = work.recipient(device.work),
            job.owesClaim
        else { return false }
        return job.event.hasManyRecipients || job.flags.contains(.accepted)
    }

    private static let unclaimedNanos: UInt64 = 500_000_000
    private static let parkedPerLook = 256

    private func parkPaced(_ app: AppContext, _ full: FullPartitions?) {
        let patience = 2 * shard.limits.patienceNanos
        dropPaced(app) { isOverdue($0, patience, full) }
    }

    private func dropPaced(_ app: AppContext, _ isGoing: (DeviceRef) -> Bool) {
        for device in Self.take(from: &app.paced, isGoing) {
            drop(device, .park(.rate, dueMs: shard.steadyMs, client: nil))
        }
    }

    /// Badge updates stay: they wait for room in memory.
    private static func take(from devices: inout [DeviceRef], _ isGoing: (DeviceRef) -> Bool) -> [DeviceRef] {
        var taken: [DeviceRef] = []
        devices.removeAll { device in
            guard taken.count < parkedPerLook, isGoing(device) else { return false }
            taken.append(device)
            return true
        }
        return taken
    }

    private func park(_ devices: [DeviceRef], of client: AppContext.Client, _ isInTrouble: Bool) {
        let order = devices.sorted { (work.recipient($0.work)?.order ?? 0) < (work.recipient($1.work)?.order ?? 0) }
        for device in order {
            drop(device, .park(isInTrouble ? client.trouble : .share, dueMs: shard.steadyMs, client: client.name))
        }
    }

    private func isOverdue(_ device: DeviceRef, _ patienceNanos: UInt64, _ full: FullPartitions?) -> Bool {
        guard let job = work.recipient(device.work), job.mayPark,
            device.device < job.devices.count, !job.devices[device.device].isParked
        else { return false }
        guard let push = job.devices[device.device].push else { return false }
        return shard.nowNanos &- push.startedNanos > patienceNanos || full?.contain(job.event) ?? false
    }
}

/// A push between making and sending.
private struct MadePush {
    let device: DeviceRef
    let client: AppContext.Client
    let push: Push
}

/// APNs' result for one push.
struct EndedPush {
    var tag: Tag
    var outcome: PushOutcome
    var attempts: Int
    /// The name of its credential set; nil if its sender has ended.
    var credential: String?
}

/// The events of the APNs clients.
extension Sender: APNsClientDelegate {
    func apns(_ client: APNsClient, didFinish bits: UInt64, outcome: PushOutcome, attempts: Int) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no push has") }
        outcomes.append(
            EndedPush(
                tag: tag, outcome: outcome, attempts: attempts,
                credential: work.pushJob(tag.ref)?.app.credential(of: client)))
        shard.requestTurn()
    }

    func apns(_ client: APNsClient, didHold bits: UInt64) {
        guard let tag = Tag(bits) else { return shard.mistake("a pause with a tag that no push has") }
        backOff(tag.device)
    }

    /// A push that backed off is about to be tried again. It is kept if another shard has a push in flight for the
    /// device; the check then follows at its turn. Within one shard the APNs client sends one push per device at a
    /// time.
    private func tryAgain(_ job: RecipientJob, _ index: Int, _ ticket: PushTicket) -> Passage {
        guard queues.isShared, job.devices[index].phase == .backingOff else { return .goesOn }
        guard queues.enter(job.devices[index].queueKey, job.deviceRef(index)) else {
            let badge = job.devices[index].push?.badge
            job.devices[index].push?.check = SendCheck(
                ticket: ticket, answers: Answers(), subject: SendCheck.Subject(badge: badge))
            return .kept
        }
        _ = job.devices[index].resume()
        return .goesOn
    }

    /// A push waited in the client: step 15 applies at the moment its stream opens.
    func apns(_ client: APNsClient, wantsCheck bits: UInt64, ticket: PushTicket) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no push has") }
        guard work.pushJob(tag.ref)?.isPushing(Int(tag.index)) ?? false else {
            _ = client.withdraw(ticket)
            return shard.noteLate()
        }
        guard let job = work.recipient(tag.ref) else { return check(tag.device, ticket: ticket) }
        if TestBreak.isOn(.noRecheck) {
            let subject = SendCheck.Subject(badge: job.devices[Int(tag.index)].push?.badge)
            return goOn(job, Int(tag.index), SendCheck(ticket: ticket, answers: Answers(), subject: subject))
        }
        if TestBreak.isOn(.swallowRetry), client.withdraw(ticket) {
            return drop(job.deviceRef(Int(tag.index)), .check(.endedElsewhere(nil)))
        }
        if tryAgain(job, Int(tag.index), ticket) == .goesOn { check(job, Int(tag.index), ticket: ticket) }
    }

    /// The client logs its own events.
    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {
        if event != .hasRoom { return }
        for app in apps {
            for waiting in app.clients where waiting.apns === client {
                let devices = waiting.stalled
                waiting.stalled = []
                for device in devices { makeReady(device) }
            }
        }
    }
}

extension RecipientJob {
    /// The number with an alert. The alert of a revoke that lowered it carries 0 too.
    func badge(_ badge: Int64?, isLowered: Bool) -> Int64? {
        guard event.showsBadge, let badge else { return nil }
        return BadgeRule.withAlert(
            badge, isLowered: isLowered, by: event.app.policy.badge, cap: event.app.policy.badgeCap)
    }
}

/// The answer of `HourScripts.takePlace`.
enum HourAnswer: Equatable {
    case place
    /// A newer push of the device went for it.
    case merged
    case wait(ms: Int64)

    init(_ number: Int64) { self = number == 0 ? .place : number < 0 ? .merged : .wait(ms: number) }
}

/// Partitions of the events topic with full windows, and the app that has most of the work.
struct FullPartitions {
    var partitions: Set<TopicPartition>
    var app: AppContext

    func contain(_ event: EventJob) -> Bool {
        event.app === app && event.parked == nil && event.chunkPart == nil && event.isOf(partitions)
    }
}
