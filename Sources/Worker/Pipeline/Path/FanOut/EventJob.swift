// SPDX-License-Identifier: Apache-2.0
import APNs
import Kafka
import Payload
import PushCore

/// One record of the events topic in progress, from its read to the settled offset.
///
/// It is settled when no part of it is open: neither its fan-out, nor a recipient, nor a record without the broker's
/// acknowledgement.
final class EventJob {
    let id: String
    let app: AppContext
    /// Identifies duplicates: `msg_id`; for a Live Activity its event (contract section 2).
    let subject: ClaimSubject
    /// Nil for a digest, which has no record, and for `explain`.
    let origin: Origin?
    /// The record of `carillon.parked` that it returned with; nil if it came from the events topic.
    let parked: ParkedWork?
    /// The digest; nil for an ordinary event.
    let digest: DigestJob?
    /// `msg_id` in its output records.
    let msgID: String
    /// Its effect on a Live Activity; nil for other events.
    let activity: (action: LiveActivity.Action, id: String)?
    /// The original record, for deliveries and to build the content again.
    let raw: [UInt8]
    /// The event's content; nil while no recipient needs it.
    private(set) var content: EventContent?
    /// For a revoke: the collapse id of the message that it names, as far as it is known. It is the same for all recipients.
    var original = CollapseID.Original.unknown { didSet { content?.original = original } }
    var ref = WorkRef.none

    /// Time of the read, monotonic.
    var begunNanos: UInt64 = 0
    /// The same of an event that returned from `carillon.parked`; nil for others.
    var returnedNanos: UInt64? { parked == nil ? nil : begunNanos }
    /// Its outcomes, in the memory that its other parts use then; without a subject they do not count.
    var counted = RecordCounts()
    /// The number of open parts, which hold its offset; begins with its own fan-out.
    var openParts: Int32 = 1
    var unackedDeliveries: Int32 = 0
    /// Recipients without a first decision. Deliveries are sent when there are none.
    var undecided: Int32 = 0
    /// Those of them that are postponed: Redis could not answer, or they wait behind such a recipient.
    var postponed: Int32 = 0
    var audience: Audience
    /// The state of its fan-out.
    var fanOutPhase = FanOutPhase.ready
    /// The division of its group into chunks; nil if it is not divided.
    var plan: ChunkPlan?
    /// Nil before the first delivery.
    var deliveries: GatewayBatches?
    /// Recipients that wait to be parked. They are written together, once no other part of the event is open.
    var parting: [ParkedRecord] = []
    /// The common beginning of its recipients' records, once there is one.
    var recordHead: [UInt8]?
    /// Its app, conversation and chunk, hashed if others wait: they begin in order.
    private(set) lazy var conversationKey = ConversationKey(app.id, conversationID, part: chunkPart)

    // Small parts together and behind the optional numbers, which leave room for seven each: so one event fits 384 bytes.

    let wantsSMS: Bool
    /// Its sender wants no alert (`push.enabled`).
    let isSwitchedOff: Bool
    /// No recipient is mentioned or forced.
    let isWithoutMentionAndForce: Bool
    /// Its alerts carry the badge.
    let showsBadge: Bool
    /// An extension adds 1 for each of its alerts that counts (`badge: none`).
    let isAddedByClient: Bool
    /// Its conversation's members have levels.
    let hasMembers: Bool
    private let ownLane: PushLane
    /// The number of this try in the common key that marks the finished members. Nil if each member has its own mark.
    var groupMarkNote: Int64?
    /// Whether work of it is left to its partition's next owner: its offset must not be settled here.
    var staysUnsettled = false
    /// Whether the event revokes a scheduled message before its time, or is such a message of a group. Then nothing is shown, and
    /// nothing counts.
    var isRevokedBefore = false
    /// Its group's size was requested.
    var isSized = false
    /// An earlier try of it may have finished some of its recipients.
    var wasTried = false
    /// Some recipient was started, or is in a chunk.
    var hasRecipients = false
    /// What its record with an empty uid says.
    var reasonForNobody = Reason.expired
    /// It has many recipients, and not all of them were started.
    var isExpanding = false
    /// The number that its sender gave (`badge: sender`); nil: none.
    let senderBadge: Int64?
    /// The part of a large group that its chunk belongs to, modulo 256: events of one part begin in order. Nil if it is
    /// not a chunk.
    let chunkPart: UInt8?
    /// Whether the event goes to a broadcast channel. The only recipient then has no uid, and the channel is the device.
    let isBroadcast: Bool
    /// Consecutive failed steps of its fan-out; spaces the retries.
    var failures: Int32 = 0
    /// Recipients that may need `content`.
    private var contentUsers: Int32 = 0

    init(
        _ message: SharedMessage, of event: borrowing Event, app: AppContext, raw: [UInt8], origin: Origin?,
        digest: DigestJob? = nil, parked: ParkedWork? = nil, chunk: ChunkRecord? = nil
    ) {
        let (sentMs, clearsOnRead, clientCounts) = (
            event.sentMs, app.policy.clearOnRead, app.policy.badge == .client
        )
        let traits = message.read {
            Traits($0, sentMs: sentMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
        }
        id = event.id
        self.app = app
        self.origin = origin
        self.digest = digest
        self.parked = parked
        msgID = traits.msgID
        subject = traits.subject
        wantsSMS = traits.wantsSMS
        isSwitchedOff = traits.isSwitchedOff
        isWithoutMentionAndForce = traits.isWithoutMentionAndForce
        showsBadge = traits.showsBadge
        isAddedByClient = traits.isAddedByClient
        if app.policy.badge == .sender, digest == nil {
            senderBadge = message.read { SenderBadge.number(of: $0, profile: $0.push.profile ?? app.policy.profile) }
        } else {
            senderBadge = nil
        }
        isBroadcast = false
        hasMembers = traits.hasMembers
        activity = nil
        audience =
            parked?.record.uid.map { Audience(uids: [$0]) } ?? chunk.map { Audience(chunk: $0.members) }
            ?? traits.audience
        chunkPart = chunk.map { UInt8(truncatingIfNeeded: $0.part) }
        content = EventContent(message, app: app)
        self.raw = raw
        ownLane = traits.lane
    }

    /// A message's properties for its job, read in one access (`SharedMessage.read`).
    private struct Traits {
        let msgID: String
        let subject: ClaimSubject
        let wantsSMS: Bool
        let isSwitchedOff: Bool
        let isWithoutMentionAndForce: Bool
        let showsBadge: Bool
        let isAddedByClient: Bool
        let hasMembers: Bool
        let audience: Audience
        let lane: PushLane

        init(_ message: borrowing Message, sentMs: Int64, clearsOnRead: Bool, clientCounts: Bool) {
            msgID = message.msgID
            subject = ClaimSubject(
                message, sentMs: sentMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
            wantsSMS = message.push.sms
            isSwitchedOff = !message.push.enabled
            isWithoutMentionAndForce = message.mention == nil && message.push.force.mode == .none
            showsBadge = !message.push.silent
            isAddedByClient =
                clientCounts && message.kind == .message && message.push.isMutable && !message.push.silent
                && !message.push.voip
            hasMembers = message.conversation.type.hasMembers
            audience = Audience(of: message)
            lane = EventContent.lane(of: message)
        }
    }

    init(
        _ activity: LiveActivity, of event: borrowing Event, app: AppContext, raw: [UInt8], origin: Origin?,
        parked: ParkedWork? = nil
    ) {
        id = event.id
        self.app = app
        self.origin = origin
        digest = nil
        self.parked = parked
        msgID = activity.msgID ?? ""
        subject = ClaimSubject(activity, eventID: event.id, sentMs: event.sentMs)
        wantsSMS = false
        isSwitchedOff = false
        isWithoutMentionAndForce = true
        showsBadge = false
        isAddedByClient = false
        senderBadge = nil
        isBroadcast = activity.channel != nil
        hasMembers = false
        self.activity = (activity.action, activity.activityID)
        audience =
            activity.isForAllBound
            ? Audience(activity: activity.activityID)
            : Audience(uids: activity.channel == nil ? activity.uids : [""])
        chunkPart = nil
        if let uid = parked?.record.uid { audience = Audience(uids: [uid]) }
        content = EventContent(activity, sentMs: event.sentMs, app: app)
        self.raw = raw
        ownLane = .direct
    }

    /// The record's position in Kafka and in the ledger.
    struct Origin {
        /// In the events topic, or in `carillon.parked`.
        var partition: TopicPartition
        var place: RecordPlace
        /// The event's source, parked or not.
        var source: EventSource
    }

    enum FanOutPhase: Equatable {
        case ready
        /// Reading the collapse id of a revoke's original.
        case readingOriginal
        /// Reading a page of the group's members, or of the activity's users.
        case readingPage
        /// The owners of a page of tokens are read.
        case readingOwners(OwnerPage)
        /// Reading the number of the group's members.
        case readingSize
        /// Reading whether an earlier event of the conversation is parked.
        case readingParked
        /// It has expired: reading whether an earlier try read its recipients.
        case readingTries
    }

    /// The partition of the events topic that has the event in its window; nil for another topic.
    var windowPartition: Int32? { parked == nil && chunkPart == nil ? origin?.partition.partition : nil }

    /// - Returns: whether its record came from one of these.
    func isOf(_ partitions: Set<TopicPartition>) -> Bool {
        origin.map { partitions.contains($0.partition) } ?? false
    }

    func tag(_ question: Question, _ index: Int = 0) -> UInt64 { Tag(ref, question, index: index).bits }

    /// A message with a time of its own (`push.send_at_ms`), as long as it has its content.
    var isScheduled: Bool { message?.read { $0.push.sendAtMs != nil } ?? false }

    /// The users' Live Activity that the event updates or ends; nil: the event is none of these.
    var updatedActivityID: String? { isBroadcast ? nil : activity.flatMap { $0.action == .start ? nil : $0.id } }

    /// Its outcomes, at its end.
    func takeCounts() -> RecordCounts {
        var ended = RecordCounts()
        swap(&ended, &counted)
        return ended
    }

    /// The broker has all its deliveries.
    var areDeliveriesSettled: Bool { !hasUnsentDeliveries && unackedDeliveries == 0 }

    var hasUnsentDeliveries: Bool { !(deliveries?.isEmpty ?? true) }

    // MARK: Fields of every kind of event

    /// The order of its records in `carillon.parked` is that of the conversation, or of the Live Activity with this id.
    var parkedConversation: String { activity?.id ?? conversationID }

    /// The part of the group that its records there name; nil if it is no chunk.
    var parkedPart: UInt8? { chunkPart ?? parked?.record.part }

    /// The bytes that it holds, without those of its record in `carillon.parked`.
    var heldBytes: Int { parked?.batch.hasSeveral ?? false ? 0 : raw.count }

    var sentMs: Int64 { subject.sentMs }
    /// Unix ms.
    var expiresAtMs: Int64 { subject.expireAtMs }
    var conversationID: String { subject.conversation }

    /// It expired before its recipients were read. Not a revoke that lowers badges, which it does whatever becomes of its alert.
    func isForNobody(nowMs: Int64) -> Bool {
        audience.isUnread && expiresAtMs <= nowMs && subject.revoke?.badge != .decrease
    }

    /// The event is to have one record with an empty uid if it turns out to have no recipient: it is a whole event, not a chunk or
    /// a parked recipient of one.
    var mayBeForNobody: Bool { chunkPart == nil && parked?.record.uid == nil && digest == nil }

    /// Whether each recipient's level in the group must be read: a group message with given uids.
    var readsLevels: Bool { !audience.hasLevels && hasMembers }

    /// Its recipients are decided many at a time.
    var hasManyRecipients: Bool { audience.isMany }

    /// A message that may have marks in a common key: from this try, an earlier one, or another worker.
    var readsGroupMark: Bool { subject.kind == .message && digest == nil && (hasManyRecipients || parked != nil) }

    /// Its members may be marked in a common key. Not those of a chunk, because one key would contain a giant group's.
    var mayUseGroupMarks: Bool {
        subject.kind == .message && digest == nil && parked == nil && chunkPart == nil && audience.isMany
            && audience.givenCount <= ChunkPlan.membersMax
    }

    /// The type of the tokens that it is pushed to; of a message only while a recipient needs its content.
    var tokenType: TokenRecord.Kind {
        if let activity { return activity.action == .start ? .start : .activity }
        return message?.read { $0.tokenType } ?? .alert
    }

    /// Its read has ended, and its fan-out goes on.
    func didRead() {
        failures = 0
        fanOutPhase = .ready
    }

    var isRevoke: Bool { subject.kind == .revoke }

    var message: SharedMessage? { content?.message }

    /// The lane of its pushes. A group that turns out to be giant uses its own lane.
    var lane: PushLane { ownLane == .group && audience.isGiant ? .bulk : ownLane }

    /// Whether the pushes of the event are background pushes.
    var isBackground: Bool { ownLane == .silent }

    // MARK: The life of its content

    func useContent() { contentUsers += 1 }

    /// One recipient needs it no more. The last one releases the content, while its many small parts are in the cache.
    func leaveContent() {
        contentUsers -= 1
        dropContentIfUnused()
    }

    func dropContentIfUnused() {
        if contentUsers > 0 || !audience.isEmpty || hasUnsentDeliveries { return }
        content = nil
        audience.abandon()
    }

    /// Builds the content again from the record, for a push that waited or another round.
    func restoreContent(_ reader: EventReader) {
        if content != nil { return }
        guard let event = try? reader.read(raw, of: .events, latestMs: sentMs) else {
            return assertionFailure("a record that was read cannot be read again")
        }
        switch event.body {
        case .message(let message): content = EventContent(message, app: app)
        case .liveActivity(let activity): content = EventContent(activity, sentMs: event.sentMs, app: app)
        case .userState: return
        }
        content?.original = original
    }
}
