import APNs
// SPDX-License-Identifier: Apache-2.0
import Digits
import Payload
import PushCore

/// One route of one recipient.
struct DeviceContext {
    let user: RecipientContext
    let route: Route
    /// For how long APNs wants the device left alone; nil: it does not.
    var pauseMs: Int64?
    /// The background pushes of the device in its hour, if they are limited and this is one.
    var hour: DeviceHour?

    func explanation(
        _ way: Explanation.Way, _ verdict: Verdict, _ reason: String, _ steps: [Explanation.Step]
    ) -> Explanation {
        Explanation(
            uid: user.job.uid, device: user.event.job.isBroadcast ? nil : route.device, route: way,
            verdict: verdict.rawValue, reason: reason, steps: steps)
    }

    /// Step 15 if the claim suppresses the alert.
    var staleSteps: [Explanation.Step] {
        guard user.claim.isRead || user.claim.isRevoked else { return [] }
        return [
            Explanation.Step(
                15, "last look", input: "read \(user.claim.isRead), revoked \(user.claim.isRevoked)",
                outcome: (user.claim.isRead ? Reason.alreadyRead : .revoked).rawValue, passes: false)
        ]
    }

    /// Strategy 4: the copy of a push from an earlier try.
    var earlierCopySteps: [Explanation.Step] {
        guard let message = user.event.job.message?.value else { return [] }
        let strategy = message.push.strategy ?? user.event.app.context.policy.strategy
        guard route.way.copyOfEarlierPush(strategy) != nil else { return [] }
        return [
            Explanation.Step(
                16, "send", input: "strategy 4 to a live device, pushed by an earlier try",
                outcome: "a copy by long connection with pushed true and alert false")
        ]
    }

    func connection(alert: Bool, ackWithinMs: Int64?, _ steps: [Explanation.Step]) -> Explanation {
        if let reason = user.plan.withoutDevice {
            // The message is delivered, its alert is not.
            return explanation(.connection, .suppressed, reason.rawValue, steps)
        }
        let wait =
            ackWithinMs.map { "an ack is required within \($0) ms; without it the decision is made again" }
            ?? "no ack is required"
        let step = Explanation.Step(16, "send", input: "alert \(alert)", outcome: "by long connection; \(wait)")
        let reason: Reason = ackWithinMs == nil ? .ok : .acked
        return explanation(.connection, .online, reason.rawValue, steps + staleSteps + [step])
    }

    // MARK: - Pushes

    func push(
        to token: BoundToken, _ standing: OwnerReply.Standing, _ steps: [Explanation.Step]
    ) -> Explanation {
        let claim = user.claim
        let lastCheck = SendFacts(
            isRead: claim.isRead, isRevoked: claim.isRevoked, isTokenOwned: standing == .owned || standing == .refused
        )
        .reason(expireAtMs: user.event.job.expiresAtMs, now: user.event.now)
        let badge = user.job.badge(claim.badge, isLowered: claim.lowered)
        let made = MadePush(user, token, badge: badge)
        var steps = steps
        steps.append(renderStep(token.record, badge: badge))
        steps.append(
            Explanation.Step(
                14, "size", input: made.payload.map { "\($0.count) bytes" } ?? "too large however much is cut",
                outcome: made.canBeSent ? "fits" : Reason.payloadTooLarge.rawValue, passes: made.canBeSent))
        if let step = burstStep { steps.append(step) }
        steps.append(
            Explanation.Step(
                15, "last look",
                input: "token \(standing.word), read \(claim.isRead), revoked \(claim.isRevoked)",
                outcome: lastCheck?.rawValue ?? "unchanged", passes: lastCheck == nil))
        if let reason = lastCheck ?? (made.canBeSent ? nil : .payloadTooLarge) {
            return unsent(Verdict(ofEnd: reason), reason.rawValue, reason.alertsByCopy, steps)
        }
        let credential = user.event.app.settings.credential(for: token.record)
        if let step = parkedStep { steps.append(step) }
        if let step = hourStep { steps.append(step) }
        steps.append(sendStep(token.record, credential))
        if let credential, token.record.type.needsProviderKey, !credential.isProviderKey {
            return unsent(.rejected, NoAnswer.unfit.rawValue, NoAnswer.unfit.alertsByCopy, steps)
        }
        let reason: Reason = user.job.isForced ? .forced : .ok
        var explanation = explanation(.apns, .accepted, reason.rawValue, steps)
        explanation.payload = made.payload
        explanation.headers = made.headers ?? []
        return explanation
    }

    /// A push that ends before it is sent. With strategy 4 the live device still gets the message.
    ///
    /// - Parameter alerts: whether the copy may alert after the push's end; nil if there is no copy.
    private func unsent(
        _ verdict: Verdict, _ reason: String, _ alerts: Bool?, _ steps: [Explanation.Step]
    ) -> Explanation {
        guard let copyAlert = route.way.copyAlert(alerts) else { return explanation(.none, verdict, reason, steps) }
        let step = Explanation.Step(
            16, "send", input: "strategy 4 to a live device",
            outcome: "not pushed; the message goes by long connection with pushed false, alert \(copyAlert)")
        return explanation(.connection, verdict, reason, steps + [step])
    }

    private func renderStep(_ token: TokenRecord, badge: Int64?) -> Explanation.Step {
        guard let message = user.event.job.message?.value else {
            return Explanation.Step(13, "render", input: "live activity", outcome: "the same for every receiver")
        }
        let policy = user.event.app.context.policy
        let variant = PayloadVariant(
            message, token: token, settings: user.job.settings, isForced: user.job.isForced,
            defaultLanguage: policy.defaultLanguage)
        let template = message.push.template.map { use in
            let words = user.event.app.context.templates.words(for: use, language: variant.language)
            return ", template \(use.id) \(words)"
        }
        return Explanation.Step(
            13, "render",
            input: "profile \((message.push.profile ?? policy.profile).rawValue), language \(variant.language), "
                + "details " + (variant.isHidden ? "hidden" : "shown") + (variant.isForced ? ", forced text" : "")
                + (template ?? ""),
            outcome: renderOutcome(message, badge: badge))
    }

    private func renderOutcome(_ message: borrowing Message, badge: Int64?) -> String {
        if message.push.silent { return "silent" }
        switch user.event.app.context.policy.badge {
        case .server: return badge.map { "badge \($0)" } ?? "no badge"
        case .client:
            let isCounted = user.job.flags.contains(.addsToBadge)
            return "the client counts; the message " + (isCounted ? "adds 1" : "adds nothing")
                + (user.job.flags.contains(.loweredBadge) ? ", and lowered the number" : "")
        case .sender:
            return user.event.job.senderBadge.map { "badge \($0), the sender's" }
                ?? "no badge: push.aps.badge is no integer"
        }
    }

    /// Nil if the app does not coalesce. Windows are in workers' memory, so whether one is open is unknown.
    private var burstStep: Explanation.Step? {
        let app = user.event.app
        guard app.context.coalesceNanos > 0, let message = user.event.job.message?.value else { return nil }
        let bypass = BurstRule.bypass(message, facts: user.job.facts, way: route.way)
        return Explanation.Step(
            15, "coalescing", input: "window \(app.settings.coalesceSeconds) s per conversation",
            outcome: bypass.map { "sent at once: \($0.rawValue)" }
                ?? "sent at once; if another alert has opened a window, it waits and is merged")
    }

    /// Nil unless an earlier push of the device, or of all devices of the user, is parked.
    private var parkedStep: Explanation.Step? {
        let now = user.event.now
        var leftMs: Int64?
        for (name, note) in user.recipient.parked where name.isEmpty || name.isSame(as: route.device) {
            guard let left = note.leftMs(nowMs: now) else { continue }
            leftMs = max(left, leftMs ?? 0)
        }
        if let pauseMs {
            return Explanation.Step(
                16, "order",
                input:
                    "APNs answered 429 TooManyRequests to an earlier push, and the device waits for another \(pauseMs) ms",
                outcome: "waits in carillon.parked, until then or until APNs accepts a push of the device")
        }
        guard let leftMs else { return nil }
        return Explanation.Step(
            16, "order", input: "an earlier push to the device is in carillon.parked, for another \(leftMs) ms",
            outcome: "waits for it there")
    }

    /// Nil unless the app limits background pushes and this is one.
    private var hourStep: Explanation.Step? {
        let limit = user.event.app.context.backgroundPerHour
        guard limit > 0, user.event.job.isBackground else { return nil }
        let leftMs = hour?.leftMs(nowMs: user.event.now)
        let taken = leftMs == nil ? 0 : hour?.taken ?? 0
        let wait = taken < limit ? nil : leftMs
        return Explanation.Step(
            16, "hour", input: "limits.background_per_hour \(limit), background pushes in the device's hour \(taken)",
            outcome: wait.map {
                "waits in carillon.parked for another \($0) ms; if a newer one waits too, that goes for both"
            } ?? "has a place")
    }

    private func sendStep(_ token: TokenRecord, _ credential: Configuration.Credential?) -> Explanation.Step {
        let endpoint = user.event.app.settings.endpoints[token.environment]
        let copy = route.way.copyTo == nil ? "" : ", then a copy by long connection with pushed true and alert false"
        return Explanation.Step(
            16, "send",
            input: (user.event.job.isBroadcast
                ? "channel \(route.device)" : "token \(TokenHash.short(token.hex))")
                + ", \(token.environment.rawValue), credential " + (credential?.name ?? "none"),
            outcome: "to \(endpoint.host):\(endpoint.port)" + copy)
    }
}

/// The push as the worker builds it (`Sender.push`).
private struct MadePush {
    /// Nil if too large even after cutting.
    var payload: [UInt8]?
    /// Nil if a header is invalid.
    var headers: [Explanation.Header]?
    private let isToken: Bool

    var canBeSent: Bool { payload != nil && headers != nil && isToken }

    init(_ user: RecipientContext, _ token: BoundToken, badge: Int64?) {
        isToken = DeviceToken(token.record.hex) != nil
        guard let content = user.event.job.content else { return }
        let id = user.job.pushIDPrefix.id(tokenHex: token.record.hex)
        payload = content.payload(for: user.job, token: token, badge: badge, id: id)
        let isUnknown = user.job.flags.contains(.originalUnknown)
        guard content.headers(topic: token.record.topic, isOriginalUnknown: isUnknown) != nil,
            let common = content.commonHeaders(isOriginalUnknown: isUnknown)
        else { return }
        let isBroadcast = user.event.job.isBroadcast
        headers = [
            isBroadcast
                ? Explanation.Header(name: "apns-channel-id", value: token.device)
                : Explanation.Header(name: "apns-topic", value: common.pushType.topic(bundleID: token.record.topic)),
            Explanation.Header(name: "apns-push-type", value: common.pushType.rawValue),
            Explanation.Header(name: "apns-priority", value: String(common.priority)),
            Explanation.Header(name: "apns-expiration", value: String(common.expirationSeconds)),
            Explanation.Header(name: isBroadcast ? "apns-request-id" : "apns-id", value: id.description),
        ]
        if let collapseID = common.collapseID {
            let text = String(decoding: collapseID, as: UTF8.self)
            headers?.append(Explanation.Header(name: "apns-collapse-id", value: text))
        }
    }
}

extension OwnerReply.Standing {
    /// In words for people.
    var word: String {
        switch self {
        case .owned: "owned"
        case .refused: "refused by APNs: it is being removed"
        case .rebound: "re-bound by the same user"
        case .moved: "bound to another user or to no user"
        }
    }
}
