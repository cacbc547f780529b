/// The events, recipients and badge updates in work on this shard, found by reference; everybody else holds references only.
final class WorkTable {
    private(set) var events: SlotTable<EventJob>
    private(set) var recipients: SlotTable<RecipientJob>
    private(set) var badgeUpdates: SlotTable<BadgeUpdate>

    init(capacity: Int, updates: Int) {
        badgeUpdates = SlotTable(capacity: updates)
        events = SlotTable(capacity: capacity)
        recipients = SlotTable(capacity: capacity)
    }

    func event(_ ref: WorkRef) -> EventJob? { events.find(ref) }
    func recipient(_ ref: WorkRef) -> RecipientJob? { recipients.find(ref) }

    func badgeUpdate(_ ref: WorkRef) -> BadgeUpdate? { badgeUpdates.find(ref) }

    func insert(_ update: BadgeUpdate) { update.ref = badgeUpdates.insert(update) }
    func remove(_ update: BadgeUpdate) { badgeUpdates.remove(update.ref) }

    func insert(_ event: EventJob) {
        event.ref = events.insert(event)
        event.app.inHand.events += 1
        event.app.inHand.bytes += event.raw.count
    }

    /// A recipient of the event; the event is kept until the recipient is removed.
    func insert(_ job: RecipientJob) {
        job.ref = recipients.insert(job)
        job.event.openParts += 1
        job.event.app.inHand.recipients += 1
    }

    func remove(_ job: RecipientJob) {
        recipients.remove(job.ref)
        job.event.app.inHand.recipients -= 1
    }

    /// One part less of the event is open. True: nothing of it is left to be done, and it is removed.
    func release(_ event: EventJob) -> Bool {
        event.openParts -= 1
        guard event.openParts == 0 else { return false }
        events.remove(event.ref)
        event.app.inHand.events -= 1
        event.app.inHand.bytes -= event.raw.count
        return true
    }
}
