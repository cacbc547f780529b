import APNs
import Payload
import PushCore
import Redis

/// One device: the way to it, and the push as it would leave.
extension Explainer {
    func explain(
        _ device: DeviceContext, _ steps: [Explanation.Step]
    ) async throws(RedisFault) -> Explanation {
        if device.mark?.acceptedDevices.contains(device.route.device) ?? false {
            return device.explanation(.none, "duplicate", "duplicate", steps)
        }
        switch device.route.way {
        case .connection(_, let alert, let ackWithinMs):
            return connection(device, alert: alert, ackWithinMs: ackWithinMs, steps)
        case .none(let reason):
            return device.explanation(.none, Verdict.suppressed.rawValue, reason.rawValue, steps)
        case .hold(let token, let holdMs):
            var steps = steps
            steps.append(
                Explanation.Step(
                    16, "send", input: "a live desktop comes first",
                    outcome: holdMs.map { "pushed after \($0) ms unless read by then" }
                        ?? "not pushed once the desktop acknowledged"))
            if holdMs == nil {
                return device.explanation(
                    .none, Verdict.suppressed.rawValue, Reason.desktopOnline.rawValue, steps)
            }
            return try await push(device, token: token, steps)
        case .apns(let token, _):
            return try await push(device, token: token, steps)
        }
    }

    private func connection(
        _ device: DeviceContext, alert: Bool, ackWithinMs: Int64?, _ steps: [Explanation.Step]
    ) -> Explanation {
        if let reason = device.decision.finalReason {
            // The message goes, its alert does not.
            return device.explanation(.connection, Verdict.suppressed.rawValue, reason.rawValue, steps)
        }
        let reason: Reason = ackWithinMs == nil ? .ok : .acked
        let wait =
            ackWithinMs.map { "an ack is wanted within \($0) ms; without it the decision is taken again" }
            ?? "no ack is wanted"
        let step = Explanation.Step(16, "send", input: "alert \(alert)", outcome: "by long connection; \(wait)")
        return device.explanation(.connection, Verdict.online.rawValue, reason.rawValue, steps + [step])
    }

    // MARK: - Pushes

    private func push(
        _ device: DeviceContext, token index: Int, _ steps: [Explanation.Step]
    ) async throws(RedisFault) -> Explanation {
        var steps = steps
        guard device.user.tokens.indices.contains(index), let hex = DeviceToken(device.user.tokens[index].record.hex)
        else {
            return device.explanation(.none, Verdict.suppressed.rawValue, Reason.noToken.rawValue, steps)
        }
        let bound = device.user.tokens[index]
        let isOwned = try await desk.owns(
            app: device.record.event.app, uid: device.user.uid, token: bound)
        let lastLook = device.lastLook(isOwned: isOwned)
        let id = PushID.make(
            app: device.record.event.app, uid: device.user.uid, msgID: device.record.claimID,
            kind: device.record.claimKind.rawValue, tokenHex: hex.hex)
        let payload = device.payload(bound.record, id: id)
        let headers = device.headers(bound.record, id: id)
        let isSendable = payload != nil && headers != nil
        steps.append(device.renderStep(bound.record))
        steps.append(
            Explanation.Step(
                14, "size", input: payload.map { "\($0.count) bytes" } ?? "too large however much is cut",
                outcome: isSendable ? "fits" : Reason.payloadTooLarge.rawValue, passes: isSendable))
        if let step = device.burstStep { steps.append(step) }
        steps.append(
            Explanation.Step(
                15, "last look", input: "token owned \(isOwned), revoked \(device.mark?.isRevoked ?? false)",
                outcome: lastLook?.rawValue ?? "unchanged", passes: lastLook == nil))
        if let reason = lastLook ?? (isSendable ? nil : .payloadTooLarge) {
            let verdict: Verdict = reason == .expired ? .expired : .suppressed
            return device.explanation(.none, verdict.rawValue, reason.rawValue, steps)
        }
        steps.append(device.sendStep(bound.record))
        let reason: Reason = device.isForced ? .forced : .ok
        var explanation = device.explanation(.apns, Verdict.accepted.rawValue, reason.rawValue, steps)
        explanation.payload = payload
        explanation.headers = headers ?? []
        return explanation
    }
}

/// One route of one recipient, and all that its push depends on.
struct DeviceContext {
    let record: RecordContext
    let user: Recipient
    let decision: Decision
    let mark: PairMark?
    /// What the push would carry; nil: nothing.
    let badge: Int64?
    let route: Route

    var isForced: Bool { decision.alert == .allow(forced: true) }

    func explanation(
        _ way: Explanation.Way, _ verdict: String, _ reason: String, _ steps: [Explanation.Step]
    ) -> Explanation {
        Explanation(
            uid: user.uid, device: route.device, route: way, verdict: verdict, reason: reason, steps: steps)
    }

    /// Step 15, from what is stored now.
    func lastLook(isOwned: Bool) -> Reason? {
        Recheck(
            isRead: user.read?.covers(seq: record.message?.serverSeq, sentMs: record.event.sentMs) ?? false,
            isRevoked: mark?.isRevoked ?? false, isTokenOwned: isOwned
        ).reason(expireAtMs: record.expireAtMs, now: record.now)
    }

    func payload(_ token: TokenRecord, id: PushID) -> [UInt8]? {
        switch record.event.body {
        case .message(let shared):
            let message = shared.value
            var payloads = EventPayloads(message, policy: record.app.policy)
            return payloads.template(variant(message, token), of: message, templates: record.app.templates)?
                .render(badge: badge, pid: id, receiver: user.uid)
        case .liveActivity(let activity):
            return ActivityPayload.encode(activity, sentMs: record.event.sentMs)
        case .userState:
            return nil
        }
    }

    /// Nil where a header could not be sent.
    func headers(_ token: TokenRecord, id: PushID) -> [Explanation.Header]? {
        let common: EventHeaders
        switch record.event.body {
        case .message(let message): common = EventHeaders(message.value, originalCollapseID: record.originalCollapseID)
        case .liveActivity(let activity): common = EventHeaders(activity, expireAtMs: record.expireAtMs)
        case .userState: return nil
        }
        guard let priority = PushPriority(rawValue: common.priority) else { return nil }
        let type = common.pushType
        let topic = type.topic(bundleID: token.topic)
        let isFit =
            (try? PushHeaders(
                topic: topic, pushType: type, priority: priority, expirationSeconds: common.expirationSeconds,
                collapseID: common.collapseID)) != nil
        guard isFit else { return nil }
        var headers = [
            Explanation.Header(name: "apns-topic", value: topic),
            Explanation.Header(name: "apns-push-type", value: type.rawValue),
            Explanation.Header(name: "apns-priority", value: String(priority.rawValue)),
            Explanation.Header(name: "apns-expiration", value: String(common.expirationSeconds)),
            Explanation.Header(name: "apns-id", value: id.description),
        ]
        if let collapseID = common.collapseID {
            let text = String(decoding: collapseID, as: UTF8.self)
            headers.append(Explanation.Header(name: "apns-collapse-id", value: text))
        }
        return headers
    }

    func renderStep(_ token: TokenRecord) -> Explanation.Step {
        guard let message = record.message else {
            return Explanation.Step(13, "render", input: "live activity", outcome: "the same for every receiver")
        }
        let variant = variant(message, token)
        let profile = message.push.profile ?? record.app.policy.profile
        return Explanation.Step(
            13, "render",
            input: "profile \(profile.rawValue), language \(variant.language), details "
                + (variant.isHidden ? "hidden" : "shown") + (variant.isForced ? ", forced text" : ""),
            outcome: message.push.silent
                ? "silent"
                : (badge.map { "badge \($0)" } ?? "no badge")
                    + (message.decreasesBadge ? ", less one if the recalled message is counted and unread" : ""))
    }

    /// Nil: the app does not coalesce. Windows are in workers' memories, so it cannot be said whether one is open.
    var burstStep: Explanation.Step? {
        guard record.app.coalesceSeconds > 0, let message = record.message else { return nil }
        return Explanation.Step(
            15, "coalescing", input: "window \(record.app.coalesceSeconds) s per conversation",
            outcome: burstBypass(message).map { "goes at once: \($0)" }
                ?? "goes at once; within a window that another alert opened it waits and is merged")
    }

    /// Why a push never waits in a burst.
    private func burstBypass(_ message: Message) -> String? {
        if message.kind == .revoke { return "a recall" }
        if message.push.voip { return "voip" }
        if message.push.silent { return "silent" }
        if isForced { return "forced" }
        if MentionClass(message.mention, of: user.uid).isMention { return "a mention" }
        if case .apns(_, .some) = route.way { return "strategy 4 to a live device" }
        return nil
    }

    func sendStep(_ token: TokenRecord) -> Explanation.Step {
        let endpoint = record.app.endpoints[token.environment]
        let credential = record.app.credential(for: token)
        var outcome = "to \(endpoint.host):\(endpoint.port)"
        if case .apns(_, .some) = route.way { outcome += ", then a copy by long connection" }
        return Explanation.Step(
            16, "send",
            input: "token \(TokenHash.short(token.hex)), \(token.environment.rawValue), credential "
                + (credential?.name ?? "none"),
            outcome: outcome)
    }

    private func variant(_ message: Message, _ token: TokenRecord) -> PayloadVariant {
        PayloadVariant(
            message, token: token, settings: user.settings, isForced: isForced,
            defaultLanguage: record.app.policy.defaultLanguage)
    }
}
