import APNs
import Kafka
import Payload
import PushCore

/// One record of the events topic in work, from its reading to the settling of its offset.
///
/// It is settled when none of its parts is open any more: neither its fan-out, nor a recipient, nor a record that the
/// broker has yet to acknowledge.
final class EventJob {
    let id: String
    let app: AppContext
    /// What duplicates are recognised by: `msg_id`; a Live Activity by its event (contract section 2).
    let subject: ClaimSubject
    /// Nil of a digest, which no record brought, and of what is only explained.
    let origin: Origin?
    /// The record of `carillon.parked` that it came back with; nil: it came from the events topic.
    let parked: ParkedWork?
    /// What a digest tells of; nil of an ordinary event.
    let digest: DigestJob?
    /// `msg_id` of the records written about it.
    let msgID: String
    /// What it does to a Live Activity; nil: it is about none.
    let activity: (action: LiveActivity.Action, id: String)?
    /// The record as it came: for deliveries, and to make the content of anew.
    let raw: [UInt8]
    /// What the event says; nil while nobody needs it.
    private(set) var content: EventContent?
    /// Of a recall: the collapse id that its original was sent with, where its sender chose one.
    var originalCollapseID: String? { didSet { content?.originalCollapseID = originalCollapseID } }
    var ref = WorkRef.none

    /// When it was read, monotonic.
    var begunNanos: UInt64 = 0
    /// What keeps its offset from being settled; begins with its own fan-out.
    var openParts = 1
    var audience: Audience
    /// How its group is divided into chunks; nil: it is not.
    var plan: ChunkPlan?
    /// Recipients without a first decision; deliveries leave when there are none.
    var undecided = 0
    /// Of these, who are read anew later: Redis could not answer about them, or they wait behind one of these.
    var postponed = 0
    var deliveries: [GatewayBatch] = []
    var unackedDeliveries = 0
    /// Recipients that may be marked finished once the deliveries are acknowledged.
    var waitingForDeliveries: [WorkRef] = []
    /// The owners of the page of tokens that is read; nil: none is.
    var ownerPage: OwnerPage?
    /// How the records of its many recipients begin, once there is one.
    var recordHead: [UInt8]?
    /// Its app, conversation and chunk, hashed where others wait: they begin in their order.
    private(set) lazy var conversationKey = ConversationKey(app.id, conversationID, part: chunkPart)
    /// Its finished members are marked together; the number stands for this try. Nil: each has a mark of his own.
    var togetherNote: Int64?

    // Small parts, together: one event in work fits 384 bytes.

    let wantsSMS: Bool
    /// Its sender wants no alert (`push.enabled`).
    let isSwitchedOff: Bool
    /// Nobody is mentioned or forced.
    let isPlain: Bool
    /// Its alerts carry the badge's number.
    let showsBadge: Bool
    /// Its conversation's members have levels.
    private let hasMembers: Bool
    private let ownLane: PushLane
    /// Its partition went to another owner: its offset is not to be settled here.
    var isHandedBack = false
    /// Its group's size was asked for.
    var isSized = false
    /// Some recipient was started, or is in a chunk.
    var hasRecipients = false
    /// What its record with an empty uid says.
    var reasonForNobody = Reason.expired
    /// It has many recipients, and not all of them were started.
    var isExpanding = false
    /// What its fan-out waits for.
    var fanOutPhase = FanOutPhase.ready
    /// The part of a large group that its chunk is of, modulo 256: events of one part begin in their order. Nil: it is no chunk.
    let chunkPart: UInt8?
    /// Failed steps of its fan-out in a row; spaces the retries.
    var failures: Int32 = 0
    /// Recipients who may need `content`.
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
        isPlain = traits.isPlain
        showsBadge = traits.showsBadge
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

    /// What a message says of its job, taken out of it in one reading (`SharedMessage.read`).
    private struct Traits {
        let msgID: String
        let subject: ClaimSubject
        let wantsSMS: Bool
        let isSwitchedOff: Bool
        let isPlain: Bool
        let showsBadge: Bool
        let hasMembers: Bool
        let audience: Audience
        let lane: PushLane

        init(_ message: borrowing Message, sentMs: Int64, clearsOnRead: Bool, clientCounts: Bool) {
            msgID = message.msgID
            subject = ClaimSubject(
                message, sentMs: sentMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
            wantsSMS = message.push.sms
            isSwitchedOff = !message.push.enabled
            isPlain = message.mention == nil && message.push.force.mode == .none
            showsBadge = !message.push.silent
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
        isPlain = true
        showsBadge = false
        hasMembers = false
        self.activity = (activity.action, activity.activityID)
        audience = activity.isForAllBound ? Audience(activity: activity.activityID) : Audience(uids: activity.uids)
        chunkPart = nil
        if let uid = parked?.record.uid { audience = Audience(uids: [uid]) }
        content = EventContent(activity, sentMs: event.sentMs, app: app)
        self.raw = raw
        ownLane = .direct
    }

    /// Where the record stands in Kafka, and its place in the ledger.
    struct Origin {
        /// Of the events topic, or of `carillon.parked`.
        var partition: TopicPartition
        var place: RecordPlace
        /// Of the event, parked or not.
        var source: EventSource
    }

    enum FanOutPhase {
        case ready
        /// The collapse id of a recall's original is read.
        case readingOriginal
        /// A page of the group's members, or of the activity's users, is read.
        case readingPage
        /// The owners of a page of tokens are read.
        case readingOwners
        /// How many members the group has is read.
        case readingSize
        /// Whether an earlier event of the conversation is parked is read.
        case readingParked
    }

    /// Deliveries for one gateway, sent as one record.
    struct GatewayBatch {
        var gateway: String
        var targets: [DeliveryTarget]
    }

    /// The partition of the events topic whose window the event takes a place of; nil: it came by another topic.
    var windowPartition: Int32? { parked == nil && chunkPart == nil ? origin?.partition.partition : nil }

    /// Whether its record came from one of these.
    func isOf(_ partitions: Set<TopicPartition>) -> Bool {
        origin.map { partitions.contains($0.partition) } ?? false
    }

    func tag(_ stage: Tag.Stage, _ index: Int = 0) -> UInt64 { Tag(ref, stage, index: index).bits }

    /// The Live Activity that the event updates or ends; nil: the event is none of these.
    var updatedActivityID: String? { activity.flatMap { $0.action == .start ? nil : $0.id } }

    /// All its deliveries are with the broker.
    var areDeliveriesSettled: Bool { deliveries.isEmpty && unackedDeliveries == 0 }

    // MARK: What the event says, whatever its kind

    var sentMs: Int64 { subject.sentMs }
    /// Unix ms.
    var expiresAtMs: Int64 { subject.expireAtMs }
    var conversationID: String { subject.conversation }

    /// It expired before its recipients were read. Not a recall that lowers badges, which it does whatever becomes of its alert.
    func isForNobody(nowMs: Int64) -> Bool {
        audience.isUnread && expiresAtMs <= nowMs && subject.revoke?.badge != .decrease
    }

    /// The event is to have one record with an empty uid if it turns out to have no recipient: it is a whole event, not a chunk or
    /// a parked recipient of one.
    var mayBeForNobody: Bool { chunkPart == nil && parked?.record.uid == nil && digest == nil }

    /// Whether each recipient's level in the group has to be read: the group's, but given uids.
    var readsLevels: Bool { !audience.hasLevels && hasMembers }

    /// Its recipients are decided many at a time.
    var hasManyRecipients: Bool { audience.isMany }

    /// A message whose members may have been marked together: here, by an earlier try, or by another worker.
    var readsTogether: Bool { subject.kind == .message && digest == nil && (hasManyRecipients || parked != nil) }

    /// Its members may be marked together. Not those of a chunk: one key would hold a giant group's.
    var mayMarkTogether: Bool {
        subject.kind == .message && digest == nil && parked == nil && chunkPart == nil && audience.isMany
            && audience.givenCount <= ChunkPlan.membersMax
    }

    var isRecall: Bool { subject.kind == .revoke }

    var message: SharedMessage? { content?.message }

    /// The share of APNs that its pushes have where many wait: a group that turns out to be giant goes by its own.
    var lane: PushLane { ownLane == .group && audience.isGiant ? .bulk : ownLane }

    // MARK: The life of its content

    func useContent() { contentUsers += 1 }

    /// One recipient needs it no more. With the last one the content goes, while its many small parts are in the cache.
    func leaveContent() {
        contentUsers -= 1
        dropContentIfUnused()
    }

    func dropContentIfUnused() {
        guard contentUsers == 0, audience.isEmpty, deliveries.isEmpty else { return }
        content = nil
        audience.abandon()
    }

    /// Makes the content anew of the record, for a push that waited or another round of a decision.
    func restoreContent(_ reader: EventReader) {
        guard content == nil, let event = try? reader.read(raw, of: .events, latestMs: sentMs) else { return }
        switch event.body {
        case .message(let message): content = EventContent(message, app: app)
        case .liveActivity(let activity): content = EventContent(activity, sentMs: event.sentMs, app: app)
        case .userState: return
        }
        content?.originalCollapseID = originalCollapseID
    }
}
