import APNs
import Kafka
import Payload
import PushCore

/// One record of the events topic, from its reading to the settling of its offset.
///
/// It is settled when nothing holds it any more: not its expansion, no recipient, no record that the broker has yet to
/// acknowledge.
final class EventJob {
    let id: String
    let app: AppContext
    /// What duplicates are recognised by: `msg_id`; a Live Activity by its event (contract section 2).
    let subject: ClaimSubject
    /// Nil of a digest, which no record brought.
    let origin: Origin?
    /// What a digest tells of.
    var digest: DigestJob?
    /// `msg_id` of the records written about it.
    let msgID: String
    let wantsSMS: Bool
    /// Its sender wants no alert (`push.enabled`).
    let isSwitchedOff: Bool
    /// Nobody is mentioned or forced.
    let isPlain: Bool
    /// Its alerts carry the badge's number.
    let showsBadge: Bool
    /// Its conversation's members have levels.
    private let hasMembers: Bool
    /// By what the event is; a group that turns out to be giant goes by its own.
    private let ownLane: PushLane
    /// The Live Activity that this event begins.
    let begunActivityID: String?
    /// Of a message or a revoke; nil of a Live Activity, and once everyone is on the way to APNs.
    private(set) var message: SharedMessage?
    private(set) var activity: ActivityJob?
    /// The record as it came, for deliveries.
    private(set) var raw: [UInt8]
    var slot = 0
    var generation: UInt32 = 0

    /// What keeps the record from being settled; begins with its own expansion.
    var holds = 1
    var audience: Audience
    /// Recipients without a decision; deliveries leave when there are none.
    var undecided = 0
    /// Devices whose push the APNs client has not taken yet.
    var unsent = 0
    /// Some device of the event has, or waits behind, a long connection.
    var hasConnections = false
    var deliveries: [GatewayBatch] = []
    var unackedDeliveries = 0
    /// Recipients that may be marked finished once the deliveries are acknowledged.
    var waitingForDeliveries: [JobRef] = []
    /// Of a recall: the collapse id that its target was sent with, where its sender chose one.
    var originalCollapseID: String?
    /// How the records of its many recipients begin, once there is one.
    var recordHead: [UInt8]?
    /// Encoded once for all recipients that share them.
    private var payloads: EventPayloads?
    private var headers: TopicHeaders?
    /// Where receivers' tokens have more than one topic.
    private var otherHeaders: [TopicHeaders] = []

    init(
        _ message: SharedMessage, of event: borrowing Event, app: AppContext, raw: [UInt8], origin: Origin?
    ) {
        id = event.id
        self.app = app
        self.origin = origin
        self.raw = raw
        msgID = message.value.msgID
        subject = ClaimSubject(
            kind: message.value.kind == .revoke ? .revoke : .message, id: message.value.msgID,
            conversation: message.value.conversation.id, sentMs: event.sentMs, seq: message.value.serverSeq,
            revoke: message.value.revoke, expireAtMs: message.value.expireAtMs)
        wantsSMS = message.value.push.sms
        isSwitchedOff = !message.value.push.enabled
        isPlain = message.value.mention == nil && message.value.push.force.mode == .none
        showsBadge = !message.value.push.silent
        hasMembers = message.value.conversation.type.hasMembers
        ownLane = message.read { Self.lane(of: $0) }
        begunActivityID = nil
        audience = message.read { Audience(of: $0) }
        payloads = message.read { EventPayloads($0, policy: app.policy) }
        self.message = message
        activity = nil
    }

    init(_ activity: LiveActivity, of event: borrowing Event, app: AppContext, raw: [UInt8], origin: Origin) {
        id = event.id
        self.app = app
        self.origin = origin
        self.raw = raw
        msgID = activity.msgID ?? ""
        subject = ClaimSubject(
            kind: .liveActivity, id: event.id, sentMs: event.sentMs,
            expireAtMs: event.sentMs &+ LiveActivity.lifetimeMs)
        wantsSMS = false
        isSwitchedOff = false
        isPlain = true
        showsBadge = false
        hasMembers = false
        ownLane = .direct
        begunActivityID = activity.action == .start ? activity.activityID : nil
        audience = Audience(uids: activity.uids)
        message = nil
        self.activity = ActivityJob(activity, sentMs: event.sentMs)
    }

    /// Everyone is on the way to APNs: what the event says is needed no more.
    ///
    /// Thousands may wait for APNs and for the broker. Let go of now, the many small parts are still in the cache; and
    /// what is kept of each is small.
    func dropContentIfSent() {
        guard message != nil || activity != nil else { return }
        guard undecided == 0, unsent == 0, !hasConnections, audience.isEmpty else { return }
        message = nil
        activity = nil
        payloads = nil
        headers = nil
        otherHeaders = []
        raw = []
        audience.abandon()
    }

    /// Where the record stands in Kafka, and its place in the ledger.
    struct Origin {
        var partition: TopicPartition
        var place: OffsetLedger.Slot
        /// The broker's timestamp, Unix ms; 0 where it gave none.
        var kafkaMs: Int64
    }

    /// Deliveries for one gateway, sent as one record.
    struct GatewayBatch {
        var gateway: String
        var targets: [DeliveryTarget]
    }

    /// Whether its record came from one of these.
    func isOf(_ partitions: Set<TopicPartition>) -> Bool {
        origin.map { partitions.contains($0.partition) } ?? false
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(slot: slot, generation: generation, stage: stage).bits }

    /// Nothing of the event's deliveries is unsent or unacknowledged.
    var areDeliveriesSettled: Bool { deliveries.isEmpty && unackedDeliveries == 0 }

    // MARK: - What the event says, whatever its kind

    var sentMs: Int64 { subject.sentMs }
    /// Unix ms.
    var expiresAtMs: Int64 { subject.expireAtMs }
    var conversationID: String { subject.conversation }

    /// Whether each recipient's level in the group has to be read: the group's, but given uids.
    var readsLevels: Bool { audience.group == nil && hasMembers }

    /// Its recipients are decided many at a time.
    var hasManyRecipients: Bool { audience.isMany }

    var isRecall: Bool { subject.kind == .revoke }

    /// The collapse id that the sender chose.
    var givenCollapseID: String? { message.flatMap { $0.read { CollapseID.given($0) } } }

    /// The Live Activity whose beginning decides whether it is over; nil: this event is none, or begins it.
    var startedActivityID: String? {
        guard let activity, activity.value.action != .start else { return nil }
        return activity.value.activityID
    }

    // MARK: - Bytes

    /// The share of APNs that its pushes have where many wait.
    var lane: PushLane { ownLane == .group && audience.isGiant ? .bulk : ownLane }

    private static func lane(of message: borrowing Message) -> PushLane {
        if message.push.voip { return .urgent }
        if message.push.silent { return .silent }
        return message.conversation.type == .group || message.conversation.type == .ultra ? .group : .direct
    }

    /// Nil where the event makes headers that cannot be sent (a topic with bytes that no header may have).
    ///
    /// - Parameter merged: the messages that the push tells of; their collapse id is not this event's.
    func headers(topic: String, _ merged: MergedPush? = nil) -> PushHeaders? {
        if let merged { return makeHeaders(topic: topic, merged) }
        if let headers, headers.topic == topic { return headers.value }
        for entry in otherHeaders where entry.topic == topic { return entry.value }
        let made = TopicHeaders(topic: topic, value: makeHeaders(topic: topic))
        if headers == nil { headers = made } else { otherHeaders.append(made) }
        return made.value
    }

    private struct TopicHeaders {
        let topic: String
        let value: PushHeaders?
    }

    private func makeHeaders(topic: String, _ merged: MergedPush? = nil) -> PushHeaders? {
        var common: EventHeaders
        if let message {
            common = message.read { EventHeaders($0, originalCollapseID: originalCollapseID) }
        } else if let activity {
            common = EventHeaders(activity.value, expireAtMs: expiresAtMs)
        } else {
            return nil
        }
        if let merged {
            common.collapseID = CollapseID.merged(conversation: conversationID, oldest: merged.oldestID)
        }
        guard let priority = PushPriority(rawValue: common.priority),
            let pushTopic = app.pushTopic(topic, common.pushType, priority)
        else { return nil }
        return try? PushHeaders(
            pushTopic, expirationSeconds: common.expirationSeconds,
            collapseID: common.collapseID)
    }

    /// The bytes for one device; nil: too large however much is cut (`payload_too_large`).
    func payload(
        uid: String, settings: UserSettings, token: BoundToken, isForced: Bool, badge: Int64?, id: PushID,
        mergedCount: Int = 0
    ) -> [UInt8]? {
        guard let message else { return activity?.payload }
        let template = message.read { message in
            var variant = PayloadVariant(
                message, token: token.record, settings: settings, isForced: isForced,
                defaultLanguage: app.policy.defaultLanguage)
            variant.mergedCount = mergedCount
            return payloads?.template(variant, of: message, templates: app.templates)
        }
        return template?.render(badge: badge, pid: id, receiver: uid)
    }
}

/// A Live Activity in work: its payload is the same for every device.
final class ActivityJob {
    let value: LiveActivity
    /// Nil: too large (`payload_too_large`).
    let payload: [UInt8]?

    init(_ activity: LiveActivity, sentMs: Int64) {
        value = activity
        payload = ActivityPayload.encode(activity, sentMs: sentMs)
    }
}
