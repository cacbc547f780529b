/// The events, recipients and badge updates in work on this shard, found by reference; everybody else holds references only.
final class WorkTable {
    private(set) var events: SlotTable<EventJob>
    private(set) var recipients: SlotTable<RecipientJob>
    private(set) var badgeUpdates: SlotTable<BadgeUpdate>
    /// Events in hand by conversation, where several apps share the shard; nil: nothing is parked for an app's share.
    private var conversations: [ConversationKey: Int]?

    init(capacity: Int, updates: Int, isShared: Bool) {
        conversations = isShared ? [:] : nil
        badgeUpdates = SlotTable(capacity: updates)
        events = SlotTable(capacity: capacity)
        recipients = SlotTable(capacity: capacity)
    }

    /// Several apps share the shard from now on.
    func share() {
        guard conversations == nil else { return }
        var counts: [ConversationKey: Int] = [:]
        events.forEach { counts[ConversationKey($0.app.id, $0.conversationID), default: 0] += 1 }
        conversations = counts
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
        if conversations != nil { conversations?[ConversationKey(event.app.id, event.conversationID), default: 0] += 1 }
    }

    /// An event of the conversation is in hand.
    func hasEvent(of conversation: String, app: String) -> Bool {
        conversations?[ConversationKey(app, conversation)] != nil
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
        leaveConversation(of: event)
        return true
    }

    private func leaveConversation(of event: EventJob) {
        if conversations == nil { return }
        let key = ConversationKey(event.app.id, event.conversationID)
        guard let count = conversations?[key] else { return }
        conversations?[key] = count > 1 ? count - 1 : nil
    }
}

/// App and conversation, hashed: of two that share one, one's event only waits for longer than it need.
struct ConversationKey: Hashable {
    private let hash: UInt64
    private let part: UInt8?

    /// - Parameter part: of a large group; nil: all of the conversation.
    init(_ app: String, _ conversation: String, part: UInt8? = nil) {
        hash = DeviceKey.make(app: app, uid: conversation, device: "")
        self.part = part
    }
}
