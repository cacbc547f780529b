// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import PushCore
import Redis
import Telemetry

/// From a route to an open stream: the device's queue, the app's rate, the check before sending, the APNs clients.
///
/// Outcomes are in `outcomes`, pushes that are not sent in `unsent`, devices with a push to make in `ready`.
final class Sender {
    let ready = Tray<PushTarget>()
    let outcomes = Tray<EndedPush>()
    let unsent = Tray<UnsentPush>()
    /// Badge updates that waited in an APNs client and must be checked.
    let updateChecks = Tray<(device: DeviceRef, ticket: PushTicket)>()
    let shard: ShardContext
    let work: WorkTable
    var apps: [AppContext]
    var queues: DeviceQueues<PushTarget>
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
    ///   too long a time, it is checked first.
    /// - prefix: of the recipient's push ids, if the caller has it.
    func enqueue(
        _ job: RecipientJob, _ index: Int, to token: BoundToken, prefix: PushIDPrefix? = nil, badge: Int64?,
        mayHaveReport: Bool = true, claimedNanos: UInt64, merged: MergedPush? = nil
    ) {
        let now = shard.nowNanos
        job.devices[index].enqueue(
            DevicePush(
                token: token, id: (prefix ?? job.pushIDPrefix).id(tokenHex: token.record.hex), badge: badge,
                mayHaveReport: mayHaveReport, startedNanos: now,
                checkedNanos: now &- claimedNanos < Self.answerNanos ? now : 0, merged: merged))
        let target = PushTarget.recipient(job.deviceRef(index))
        if job.devices[index].inheritsTurn {
            job.devices[index].inheritsTurn = false
            return turnCame(target, job.event.app)
        }
        let key = DeviceKey.make(app: job.event.app.id, uid: job.uid, device: token.device)
        job.devices[index].queueKey = key
        if queues.enter(key, target) { turnCame(target, job.event.app) }
    }

    /// A badge update queues for its device like any push.
    func enqueue(_ update: PushTarget, _ key: UInt64, app: AppContext) {
        if queues.enter(key, update) { turnCame(update, app) }
    }

    /// The device's turn has come: at the pace of `limits.rate`.
    private func turnCame(_ target: PushTarget, _ app: AppContext) {
        switch target {
        case .badgeUpdate(let device): work.badgeUpdate(device.work)?.turnCame(device.device)
        case .recipient(let device):
            guard let job = work.recipient(device.work) else { break }
            if job.devices[device.device].resume() {
                return check(job, device.device, ticket: job.devices[device.device].push?.check?.ticket)
            }
            job.devices[device.device].turnCame()
            // Its number may be the older one: it is claimed again before it goes.
            // An end of the Live Activity may have been accepted since it was read: it is looked for once more.
            if job.event.updatedActivityID != nil
                || queues.mayShowNumber(job.devices[device.device].queueKey, readSince: job.readNanos)
            {
                job.devices[device.device].push?.checkedNanos = 0
            }
        }
        // The common case continues directly.
        if app.paced.isEmpty, app.rate.isUnlimited { return makeReady(target) }
        if app.paced.isEmpty {
            guard let dueNanos = app.rate.take(nowNanos: shard.nowNanos) else { return makeReady(target) }
            pace(app, dueNanos)
        }
        app.paced.append(target)
    }

    /// Its push is made and sent in this turn, together with all others of the turn.
    func makeReady(_ target: PushTarget) {
        ready.append(target)
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
            guard let app = appOfQueued(turn.item) else {
                queues.pass(turn)
                continue
            }
            turnCame(turn.item, app)
        }
        if queues.hasLeft { shard.requestTurn() }
    }

    /// Another shard, or this one, left awaited devices.
    func didVacate(_ cells: [DeviceOccupancy.Cell]) {
        if queues.vacate(cells) { serveQueues() }
    }

    /// Once per turn: notifies all shards of awaited devices that were left here.
    func notifyVacated() { queues.notifyVacated() }

    /// - Returns: nil if the queued work has ended.
    private func appOfQueued(_ target: PushTarget) -> AppContext? {
        switch target {
        case .badgeUpdate(let device):
            work.badgeUpdate(device.work).flatMap { $0.isUnsent(device.device) ? $0.app : nil }
        case .recipient(let device):
            work.recipient(device.work).flatMap { $0.isPushing(device.device) ? $0.event.app : nil }
        }
    }

    // MARK: Making and sending

    /// Makes the push of the next device in turn, or checks it first. `sendMade` gives it to the APNs client: the code of both does
    /// not fit the processor's first cache.
    func make(_ device: DeviceRef) {
        guard let job = work.recipient(device.work), device.device < job.devices.count,
            job.devices[device.device].phase == .due, let due = job.devices[device.device].pushParts()
        else { return shard.late() }
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

    /// Gives the made pushes to the APNs clients.
    func sendMade() {
        shard.enter(.send)
        made.takeAll { send($0) }
    }

    private func send(_ made: MadePush) {
        let index = made.device.device
        guard let job = work.recipient(made.device.work), index < job.devices.count,
            job.devices[index].phase == .due
        else { return shard.late() }
        switch made.client.apns.send(made.push, canRenew: true) {
        case .taken:
            job.devices[index].send()
            job.leaveContentIfSent()
        case .held:
            job.devices[index].send()
            backOff(job, index)
        case .full: made.client.stalled.append(.recipient(made.device))
        // The process ends: the record is not settled and comes again.
        case .closed: break
        case .unfit(let fault): drop(made.device, .unfit(fault))
        }
    }

    /// The reason for parking the push instead of sending it; nil if it goes.
    private func causeToPark(_ job: RecipientJob, _ index: Int, _ client: AppContext.Client?) -> UnsentPush.Cause? {
        guard job.mayPark else { return nil }
        if job.devices[index].parksAtItsTurn { return .park(.behind, dueMs: shard.steadyMs, client: nil) }
        if !parked.isEmpty, let dueMs = parked.dueMs(job.devices[index].queueKey, before: job) {
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

    /// The device backs off: nothing of it is in flight, so that the next push may come and replace this one.
    func backOff(_ job: RecipientJob, _ index: Int) {
        guard index < job.devices.count, job.devices[index].backOff() else { return shard.late() }
        leaveQueue(job.devices[index].queueKey)
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

    /// The same for badge updates.
    func withdrawUpdates(_ isGoing: (WorkRef) -> Bool) -> [DeviceRef] {
        var withdrawn: [DeviceRef] = []
        for app in apps {
            for client in app.clients { withdrawn += withdraw(.updatePush, from: client) { isGoing($0.work) } }
        }
        return withdrawn
    }

    func withdraw(
        _ question: Question = .push, from client: AppContext.Client, _ isGoing: (DeviceRef) -> Bool
    ) -> [DeviceRef] {
        let pushes = client.apns.withdrawUnsent { bits in
            guard let tag = Tag(bits), tag.question == question else { return false }
            return isGoing(DeviceRef(work: tag.ref, device: Int(tag.index)))
        }
        return pushes.compactMap { push in
            Tag(push.tag).map { DeviceRef(work: $0.ref, device: Int($0.index)) }
        }
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
