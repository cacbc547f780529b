import PushCore
import Redis

/// After a push with a number was accepted, where other workers may push the same device: whether a higher number was
/// claimed meanwhile. It is then sent once more, since the two pushes may have arrived in the wrong order.
///
/// One look per accepted push, and none where another push of the device is queued or out in this process: that one has
/// a newer number, and is looked after in its turn. Should it end without being accepted, the look is made up for.
final class NewestBadges {
    private let shard: ShardContext
    private let sender: Sender
    private let bursts: Bursts
    private let updates: BadgeUpdates
    private var looks: SlotTable<Look>
    /// Numbers that another push followed, by device: the newest of each.
    private var followed: [UInt64: AcceptedBadge] = [:]

    /// A reading under way.
    private final class Look {
        let accepted: AcceptedBadge
        var base = BadgeReading()

        init(_ accepted: AcceptedBadge) { self.accepted = accepted }
    }

    init(_ shard: ShardContext, sender: Sender, bursts: Bursts, updates: BadgeUpdates) {
        self.shard = shard
        self.sender = sender
        self.bursts = bursts
        self.updates = updates
        looks = SlotTable(capacity: shard.limits.recipientsMax)
    }

    /// Looks under way.
    var count: Int { looks.count }

    func look(_ accepted: AcceptedBadge) {
        if isFollowed(accepted) { return leaveToFollower(accepted) }
        if !followed.isEmpty { followed[accepted.queueKey] = nil }
        read(accepted)
    }

    private func leaveToFollower(_ accepted: AcceptedBadge) {
        if followed.count < shard.limits.recipientsMax { followed[accepted.queueKey] = accepted }
    }

    /// Once a second: looks that were left to pushes which were not accepted.
    func lookAgain() {
        if followed.isEmpty { return }
        for (key, accepted) in followed where !isFollowed(accepted) {
            followed[key] = nil
            read(accepted)
        }
    }

    private func read(_ accepted: AcceptedBadge) {
        guard !looks.isFull else { return }
        let ref = looks.insert(Look(accepted))
        do throws(RedisFault) {
            try shard.store.readBadge(
                app: accepted.app.id, uid: accepted.uid, baseTag: Tag(ref, .newestBase).bits,
                sizeTag: Tag(ref, .newestSize).bits)
        } catch {
            // Redis takes no more commands; an answer to the first one finds nobody.
            end(ref, isHigher: true)
        }
    }

    /// Another push carries the number: one of the device in this process, or that of a burst's end.
    private func isFollowed(_ accepted: AcceptedBadge) -> Bool {
        if sender.isBusy(accepted.queueKey) { return true }
        return accepted.burst.map(bursts.isWaiting) ?? false
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let look = looks.find(tag.ref) else { return }
        guard tag.stage == .newestSize else {
            look.base = BadgeReading(base: reply)
            return
        }
        let size = reply.int64 ?? 0
        let accepted = look.accepted
        // The client's own report is no reason to send it a number: only messages that came after the report are.
        let isReported = look.base.isReported(since: accepted.asOfMs) && look.base.later(size: size) == 0
        let newest = look.base.badge(size: size)
        end(
            tag.ref,
            isHigher: !isReported && BadgeRule.isOvertaken(accepted.badge, newest: newest, accepted.app.policy))
    }

    /// Not known: the update reads the number itself before it goes.
    func didFail(_ tag: Tag) { end(tag.ref, isHigher: true) }

    private func end(_ ref: WorkRef, isHigher: Bool) {
        guard let look = looks.find(ref) else { return }
        looks.remove(ref)
        if isHigher {
            if isFollowed(look.accepted) { leaveToFollower(look.accepted) } else { updates.begin(look.accepted) }
        }
        shard.requestTurn()
    }
}

/// A number that APNs accepted for a device.
struct AcceptedBadge {
    var app: AppContext
    var uid: String
    var eventID: String
    var token: BoundToken
    /// As pushed, so capped.
    var badge: Int64
    /// `sent_ms` of its message: a client that has reported its total since knows its number.
    var asOfMs: Int64
    /// The burst that the message may belong to; nil: the app has none.
    var burst: PushID?

    /// Its device in `DeviceQueues`.
    var queueKey: UInt64 { DeviceKey.make(app: app.id, uid: uid, device: token.device) }
}
