// SPDX-License-Identifier: Apache-2.0
/// The events, recipients and badge updates in progress on this shard, found by reference. All other code holds
/// references only.
final class WorkTable {
    private(set) var events: SlotTable<EventJob>
    private(set) var recipients: SlotTable<RecipientJob>
    private(set) var badgeUpdates: SlotTable<BadgeUpdate>
    /// Events in progress by conversation, if several apps share the shard; nil if nothing is parked for an app's
    /// share.
    private var conversations: [ConversationKey: Int]?
    /// The same of the process.
    private let ofProcess: ConversationsInHand

    init(capacity: Int, updates: Int, isShared: Bool, ofProcess: ConversationsInHand) {
        self.ofProcess = ofProcess
        conversations = isShared ? [:] : nil
        badgeUpdates = SlotTable(capacity: updates, isSecond: true)
        events = SlotTable(capacity: capacity)
        recipients = SlotTable(capacity: capacity)
    }

    /// Several apps share the shard from now on.
    func share() {
        if conversations != nil { return }
        var counts: [ConversationKey: Int] = [:]
        events.forEach { event in
            let key = ConversationKey(event.app.id, event.conversationID)
            counts[key, default: 0] += 1
            if event.parked == nil { ofProcess.add(1, to: key.hash) }
            if let partition = event.windowPartition { event.app.inHand.ofPartition[partition, default: 0] += 1 }
        }
        conversations = counts
    }

    func event(_ ref: WorkRef) -> EventJob? { events.find(ref) }

    /// Inlined: a push makes ten such calls, and a call takes as long as the look-up.
    @inline(__always)
    func recipient(_ ref: WorkRef) -> RecipientJob? { recipients.find(ref) }

    func badgeUpdate(_ ref: WorkRef) -> BadgeUpdate? { badgeUpdates.find(ref) }

    /// The work of a push.
    func pushJob(_ ref: WorkRef) -> PushJob? { recipients.find(ref) ?? badgeUpdates.find(ref) }

    func insert(_ update: BadgeUpdate) { update.ref = badgeUpdates.insert(update) }
    func remove(_ update: BadgeUpdate) { badgeUpdates.remove(update.ref) }

    func insert(_ event: EventJob) {
        event.ref = events.insert(event)
        event.app.inHand.events += 1
        event.app.inHand.bytes += event.heldBytes
        if conversations != nil { enterConversation(of: event) }
    }

    private func enterConversation(of event: EventJob) {
        let key = ConversationKey(event.app.id, event.conversationID)
        conversations?[key, default: 0] += 1
        // Records from the topic are in the order of the topic.
        if event.parked == nil { ofProcess.add(1, to: key.hash) }
        if let partition = event.windowPartition { event.app.inHand.ofPartition[partition, default: 0] += 1 }
    }

    /// An event of the conversation is in progress.
    func hasEvent(of conversation: String, app: String) -> Bool {
        conversations?[ConversationKey(app, conversation)] != nil
    }

    /// A recipient of the event. The event is kept until the recipient is removed.
    func insert(_ job: RecipientJob) {
        job.ref = recipients.insert(job)
        job.event.openParts += 1
        job.event.app.inHand.recipients += 1
    }

    func remove(_ job: RecipientJob) {
        recipients.remove(job.ref)
        job.event.app.inHand.recipients -= 1
    }

    // MARK: The end

    /// The event has one open part less. Returns true if none is left, and it is removed.
    func release(_ event: EventJob) -> Bool {
        event.openParts -= 1
        guard event.openParts == 0 else { return false }
        events.remove(event.ref)
        event.app.inHand.events -= 1
        event.app.inHand.bytes -= event.heldBytes
        leaveConversation(of: event)
        return true
    }

    private func leaveConversation(of event: EventJob) {
        if conversations == nil { return }
        let key = ConversationKey(event.app.id, event.conversationID)
        guard let count = conversations?[key] else { return }
        if event.parked == nil { ofProcess.add(-1, to: key.hash) }
        if let partition = event.windowPartition { event.app.inHand.ofPartition[partition, default: 0] -= 1 }
        conversations?[key] = count > 1 ? count - 1 : nil
    }
}

/// The hash of app and conversation: after a collision an event only waits longer than necessary.
struct ConversationKey: Hashable {
    let hash: UInt64
    private let part: UInt8?

    /// - Parameter part: of a large group; nil for the whole conversation.
    init(_ app: String, _ conversation: String, part: UInt8? = nil) {
        hash = DeviceKey.make(app: app, uid: conversation, device: "")
        self.part = part
    }
}
