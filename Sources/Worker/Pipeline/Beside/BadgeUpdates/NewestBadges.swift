// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// After a push with a number was accepted and other workers may push the same device: checks whether a higher number
/// was claimed in that time. If so, it is sent again, because the two pushes may have arrived in the wrong order.
///
/// One check per accepted push, and none if another push of the device is queued or in flight in this process: that one
/// has a newer number and its own check. If it ends without being accepted, the check is done later.
///
/// A number that is to be sent again waits for a moment. If another push of the device is accepted in this time, the number
/// is not sent: the device has the number of that push, which has its own check.
final class NewestBadges {
    private let shard: ShardContext
    private let sender: Sender
    private let bursts: Bursts
    private let updates: BadgeUpdates
    private var looks: SlotTable<Look>
    /// Numbers followed by another push, by device: the newest of each.
    private var followed: [UInt64: AcceptedBadge] = [:]
    /// Numbers that are to be sent again, by device.
    private var overtaken: [UInt64: Overtaken] = [:]
    /// Pushes without their number, by device: it is sent once it is exact.
    private var withheld: [UInt64: AcceptedBadge] = [:]
    private var isClosed = false
    private static let withheldAtOnce = 1_000
    private static let pauseNanos: UInt64 = 500_000_000

    private struct Overtaken {
        var accepted: AcceptedBadge
        /// Monotonic.
        var dueNanos: UInt64
    }

    /// An open read.
    private final class Look {
        let accepted: AcceptedBadge
        /// Nil if only the ledger's size was asked for.
        var base: BadgeReading?

        init(_ accepted: AcceptedBadge) {
            self.accepted = accepted
            if accepted.mayHaveReport { base = BadgeReading() }
        }
    }

    init(_ shard: ShardContext, sender: Sender, bursts: Bursts, updates: BadgeUpdates) {
        self.shard = shard
        self.sender = sender
        self.bursts = bursts
        self.updates = updates
        looks = SlotTable(capacity: shard.limits.recipientsMax)
    }

    /// Number of open reads, and of numbers that are to be sent again.
    var count: Int { looks.count + overtaken.count }

    func look(_ accepted: AcceptedBadge) {
        if accepted.isWithheld {
            if withheld.count < shard.limits.recipientsMax { withheld[accepted.queueKey] = accepted }
            return
        }
        if !withheld.isEmpty { withheld[accepted.queueKey] = nil }
        if !overtaken.isEmpty { overtaken[accepted.queueKey] = nil }
        if isFollowed(accepted) { return leaveToFollower(accepted) }
        if !followed.isEmpty { followed[accepted.queueKey] = nil }
        read(accepted)
    }

    private func leaveToFollower(_ accepted: AcceptedBadge) {
        if followed.count < shard.limits.recipientsMax { followed[accepted.queueKey] = accepted }
    }

    /// Once a second: numbers that are to be sent again, and checks that were left to pushes that were not accepted.
    func lookAgain() {
        sendOvertaken()
        readWithheld()
        if followed.isEmpty { return }
        let left = followed.filter { !isFollowed($0.value) }
        for (key, accepted) in left.sorted(by: { $0.value.isBefore($1.value) }) {
            followed[key] = nil
            read(accepted)
        }
    }

    private func readWithheld() {
        if withheld.isEmpty || shard.writes.refusal != nil { return }
        let exact = withheld.filter { shard.isBadgeExact(app: $0.value.app.id, uid: $0.value.uid) }
        for (key, accepted) in exact.sorted(by: { $0.value.isBefore($1.value) }).prefix(Self.withheldAtOnce) {
            withheld[key] = nil
            read(accepted)
        }
    }

    private func sendOvertaken() {
        if overtaken.isEmpty { return }
        let due = overtaken.filter { isClosed || $0.value.dueNanos <= shard.nowNanos }
        for (key, entry) in due.sorted(by: { $0.value.accepted.isBefore($1.value.accepted) }) {
            overtaken[key] = nil
            if isFollowed(entry.accepted) { leaveToFollower(entry.accepted) } else { updates.begin(entry.accepted) }
        }
    }

    /// The process ends: no number waits.
    func close() {
        isClosed = true
        sendOvertaken()
    }

    private func read(_ accepted: AcceptedBadge) {
        if looks.isFull { return }
        ask(looks.insert(Look(accepted)), accepted, whole: accepted.mayHaveReport)
    }

    /// - Parameter isWhole: with the client's report, which takes a second command.
    private func ask(_ ref: WorkRef, _ accepted: AcceptedBadge, whole isWhole: Bool) {
        do throws(RedisFault) {
            let (app, sizeTag) = (accepted.app.id, Tag(ref, .newestSize).bits)
            guard isWhole else { return try shard.store.readLedgerSize(app: app, uid: accepted.uid, tag: sizeTag) }
            try shard.store.readBadge(
                app: app, uid: accepted.uid, baseTag: Tag(ref, .newestBase).bits, sizeTag: sizeTag)
        } catch {
            // Redis accepts no more commands. A late answer to the first one finds nothing.
            end(ref, isHigher: true)
        }
    }

    /// Another push carries the number: one for the device in this process, or that of a burst's end.
    private func isFollowed(_ accepted: AcceptedBadge) -> Bool {
        if sender.isBusy(accepted.queueKey) { return true }
        return accepted.burst.map(bursts.isWaiting) ?? false
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let look = looks.find(tag.ref) else { return shard.noteLate() }
        guard tag.question == .newestSize else {
            look.base = BadgeReading(base: reply)
            return
        }
        let size = reply.int64 ?? 0
        let accepted = look.accepted
        guard let base = look.base else {
            // Without messages that were counted since, at most a report has changed the number.
            guard BadgeRule.isOvertaken(accepted.badge, newest: size, accepted.app.policy) else {
                return end(tag.ref, isHigher: false)
            }
            look.base = BadgeReading()
            return ask(tag.ref, accepted, whole: true)
        }
        // The client's own report is no reason to send it a number: only messages that came after the report are.
        let isReported = base.isReported(since: accepted.asOfMs) && base.later(size: size) == 0
        let newest = base.badge(size: size)
        end(
            tag.ref,
            isHigher: !isReported && BadgeRule.isOvertaken(accepted.badge, newest: newest, accepted.app.policy))
    }

    /// Unknown: the update reads the number itself before it is sent.
    func didFail(_ tag: Tag) { end(tag.ref, isHigher: true) }

    private func end(_ ref: WorkRef, isHigher: Bool) {
        guard let look = looks.find(ref) else { return shard.noteLate() }
        looks.remove(ref)
        if isHigher {
            sendAgain(look.accepted)
        } else if !overtaken.isEmpty {
            // An earlier push of the device; this one was accepted after it.
            overtaken[look.accepted.queueKey] = nil
        }
        shard.requestTurn()
    }

    private func sendAgain(_ accepted: AcceptedBadge) {
        if isFollowed(accepted) { return leaveToFollower(accepted) }
        guard !isClosed, overtaken.count < shard.limits.recipientsMax else { return updates.begin(accepted) }
        overtaken[accepted.queueKey] = Overtaken(accepted: accepted, dueNanos: shard.nowNanos &+ Self.pauseNanos)
    }
}

/// A number that APNs accepted for a device.
struct AcceptedBadge {
    var app: AppContext
    var uid: String
    var eventID: String
    var token: BoundToken
    /// As pushed, so it is capped.
    var badge: Int64
    /// It was pushed without a number, because that was not exact.
    var isWithheld = false
    /// `sent_ms` of its message: a client that has reported its total since knows its number.
    var asOfMs: Int64
    /// A client's report may be part of the number.
    var mayHaveReport: Bool
    /// The burst of the message; nil if the app has none.
    var burst: PushID?

    /// Its device in `DeviceQueues`.
    var queueKey: UInt64 { DeviceKey.make(app: app.id, uid: uid, device: token.device) }

    /// An order of devices that the same work gives again.
    func isBefore(_ other: AcceptedBadge) -> Bool {
        (app.id, uid, token.device) < (other.app.id, other.uid, other.token.device)
    }
}
