// SPDX-License-Identifier: Apache-2.0
import APNs
import Payload
import PushCore

/// The content of an event, and the bytes built from it once for all its recipients.
final class EventContent {
    /// For a message or a revoke; nil for a Live Activity.
    let message: SharedMessage?
    let activity: LiveActivity?
    /// For a revoke: the collapse id of the message that it names, as far as it is known. It is the same for all recipients.
    var original = CollapseID.Original.unknown
    private let app: AppContext
    private let expiresAtMs: Int64
    /// Nil while no payload serves several devices.
    private var payloads: EventPayloads?
    /// Equal for all devices; nil if too large, or if it is not a Live Activity.
    private let activityPayload: [UInt8]?
    private var headers: TopicHeaders?
    /// Number of further topics with kept headers. They are searched linearly; headers of more topics are built each
    /// time.
    private static let topicsKept = 16
    /// Used if receivers' tokens have more than one topic.
    private var otherHeaders: [TopicHeaders] = []

    private struct TopicHeaders {
        let topic: String
        let isOriginalUnknown: Bool
        let value: PushHeaders?
    }

    init(_ message: SharedMessage, app: AppContext) {
        self.message = message
        activity = nil
        self.app = app
        expiresAtMs = message.value.expireAtMs
        activityPayload = nil
    }

    init(_ activity: LiveActivity, sentMs: Int64, app: AppContext) {
        message = nil
        self.activity = activity
        self.app = app
        expiresAtMs = sentMs &+ LiveActivity.lifetimeMs
        activityPayload = ActivityPayload.encode(activity, sentMs: sentMs)
    }

    /// The lane of a message by its kind.
    static func lane(of message: borrowing Message) -> PushLane {
        if message.push.voip { return .urgent }
        if message.push.silent { return .silent }
        return message.conversation.type == .group || message.conversation.type == .ultra ? .group : .direct
    }

    private func profile(of message: borrowing Message) -> PayloadProfile {
        message.push.profile ?? app.policy.profile
    }

    /// The collapse id chosen by the sender.
    var givenCollapseID: String? { message.flatMap { $0.read { CollapseID.given($0, profile: profile(of: $0)) } } }

    /// - Returns: nil if the event gives invalid headers (a topic with bytes that no header may have).
    ///
    /// - Parameters:
    ///   - isOriginalUnknown: of a revoke: its recipient has nothing of the message that it names.
    ///   - merged: the messages of a merged push; their collapse id is not this event's.
    func headers(topic: String, isOriginalUnknown: Bool, _ merged: MergedPush? = nil) -> PushHeaders? {
        if let merged { return makeHeaders(topic: topic, isOriginalUnknown, merged) }
        if let headers, headers.isOriginalUnknown == isOriginalUnknown, headers.topic == topic { return headers.value }
        for entry in otherHeaders where entry.isOriginalUnknown == isOriginalUnknown && entry.topic == topic {
            return entry.value
        }
        let made = TopicHeaders(
            topic: topic, isOriginalUnknown: isOriginalUnknown, value: makeHeaders(topic: topic, isOriginalUnknown))
        if headers == nil {
            headers = made
        } else if otherHeaders.count < Self.topicsKept {
            otherHeaders.append(made)
        }
        return made.value
    }

    /// The headers that all its pushes to such recipients share; nil: it has no content.
    func commonHeaders(isOriginalUnknown: Bool) -> EventHeaders? {
        if let message {
            let known = original == .unknown && !isOriginalUnknown ? .known(nil) : original
            return message.read { EventHeaders($0, profile: profile(of: $0), original: known) }
        }
        return activity.map { EventHeaders($0, expireAtMs: expiresAtMs) }
    }

    private func makeHeaders(
        topic: String, _ isOriginalUnknown: Bool, _ merged: MergedPush? = nil
    ) -> PushHeaders? {
        guard var common = commonHeaders(isOriginalUnknown: isOriginalUnknown) else { return nil }
        if let merged, let message {
            common.collapseID = CollapseID.merged(
                conversation: message.value.conversation.id, oldest: merged.oldestID)
        }
        guard let priority = PushPriority(rawValue: common.priority),
            let pushTopic = app.pushTopic(topic, common.pushType, priority)
        else { return nil }
        guard let channel = activity?.channel else {
            return try? PushHeaders(
                pushTopic, expirationSeconds: common.expirationSeconds, collapseID: common.collapseID)
        }
        return try? PushHeaders(
            pushTopic, expirationSeconds: common.expirationSeconds, channel: PushChannel(channel, bundleID: topic))
    }

    /// The bytes for one device; nil if too large even after cutting (`payload_too_large`).
    ///
    /// - Parameter mergedCount: messages in the push; 0 for only its own.
    func payload(
        for job: RecipientJob, token: BoundToken, badge: Int64?, id: PushID, mergedCount: Int = 0
    ) -> [UInt8]? {
        guard let message else { return activityPayload }
        let isShared = job.event.hasManyRecipients || job.devices.count > 1
        let rules = app.rules
        return message.read { message in
            var variant = PayloadVariant(
                message, token: token.record, settings: job.settings, isForced: job.isForced,
                defaultLanguage: rules.policy.defaultLanguage)
            variant.mergedCount = mergedCount
            variant.isDigest = job.event.digest != nil
            variant.lowersBadge = job.flags.contains(.loweredBadge)
            if rules.policy.badge == .client {
                variant.addsToBadge = job.flags.contains(.addsToBadge)
                variant.undoesAlert = variant.lowersBadge && job.addedBy.contains(token.device)
            }
            if !isShared {
                return PayloadTemplate.payload(
                    message, variant: variant, rules: rules.payload.of(message), templates: rules.templates,
                    badge: badge, pid: id, receiver: job.uid)
            }
            if payloads == nil { payloads = EventPayloads(message, rules: rules.payload) }
            return payloads?.template(variant, of: message, templates: rules.templates)?
                .render(badge: badge, pid: id, receiver: job.uid)
        }
    }
}
