// SPDX-License-Identifier: Apache-2.0
/// Acks: a device that confirmed a delivery gets no push; one that did not gets it when its time is over, and not before.
extension Judge {
    mutating func checkAcks() {
        for (eventID, targets) in deliveries.sorted(by: { $0.key < $1.key }) {
            guard let event = targets.first.flatMap({ target in sentByID["\(target.app) \(eventID)"] }) else {
                continue
            }
            for target in targets {
                if let why = faultConnection(target, event) {
                    found(
                        "deliveries", "\(event.messageID) to \(target.uid)'s \(target.device): \(why)", event.messageID)
                }
                if target.wantsAck { checkAck(target, event) }
            }
        }
    }

    /// The gateway and the connection are those of a presence that may have held; so is the time for the ack.
    private func faultConnection(_ target: Observed.Delivery, _ event: Sent) -> String? {
        guard target.connection >= 0 else { return nil }
        let history = history(event.app, target.uid)
        let spans = history.spans(of: target.device).filter {
            $0.fromNanos <= target.atNanos && $0.seenUntilNanos >= event.atNanos && $0.move.gateway == target.gateway
                && $0.move.connection == target.connection
        }
        guard let span = spans.first else {
            return target.atNanos >= history.lostFromNanos ? nil : "it has no such connection"
        }
        guard let ackByMs = target.ackByMs else { return nil }
        let least = clock.ms(event.atNanos) + span.ackMs - clock.slackMs
        let most = clock.ms(target.atNanos) + span.ackMs + clock.slackMs
        if ackByMs < least || ackByMs > most { return "its ack is awaited until \(ackByMs), not \(least) to \(most)" }
        return nil
    }

    private mutating func checkAck(_ target: Observed.Delivery, _ event: Sent) {
        guard let ackByMs = target.ackByMs else { return }
        let history = history(event.app, target.uid)
        let ends = (deliveries[event.eventID] ?? []).filter { $0.uid == target.uid && $0.device == target.device }
        let ack = history.states.indices.first { index in
            guard case .ack(target.device, event.messageID) = history.states[index].kind else { return false }
            return clock.ms(history.applied[index]) + clock.slackMs + 100
                < (ends.compactMap(\.ackByMs).min() ?? ackByMs)
        }
        let pushes = pushes(of: event, to: target.device, of: target.uid).filter { $0.atNanos > target.atNanos }
        let isSlow = slackNanos > 1_500_000_000
        let slack = (isSlow ? slackNanos : 300_000_000) &+ UInt64(clock.slackMs) &* 1_000_000
        if let ack, let push = pushes.first(where: { $0.atNanos > history.applied[ack] &+ slack }), !mayBeQueued(push),
            !mayHaveLost(event, target.uid), allowance.losses.isEmpty
        {
            found(
                "acks",
                "\(event.messageID) was pushed to \(target.uid)'s \(target.device) at "
                    + "\(push.atNanos / 1_000_000) ms though it was acknowledged", event.messageID)
        }
        if let ack { checkAcked(target, event, at: history.applied[ack]) }
        guard !mayRepeat, !event.isDoubled else { return }
        let until = target.atNanos
        for push in pushes where clock.ms(push.atNanos) + clock.slackMs < ackByMs && push.atNanos > until {
            // The device may have left, or be another one's by now, and another ack's end decides again.
            guard history.isLive(target.device, from: target.atNanos, to: push.atNanos) else { continue }
            found(
                "acks", "\(event.messageID) was pushed to \(target.uid)'s \(target.device) before its ack was missing",
                event.messageID)
        }
    }

    /// Whether the push was decided before the ack, and waited.
    private func mayBeQueued(_ push: Observed.Push) -> Bool {
        mayRepeat && observed.pushes.contains { $0.pid == push.pid && $0.atNanos < push.atNanos }
    }

    /// An ack in time ends the device.
    private mutating func checkAcked(_ target: Observed.Delivery, _ event: Sent, at nanos: UInt64) {
        guard !mayRepeat, !event.isDoubled else { return }
        let own = (outcomes[event.eventID] ?? []).filter {
            $0.uid == target.uid && ($0.device == target.device || $0.device.isEmpty) && $0.isFinal
                && $0.atNanos > nanos &+ 1_000_000_000
        }
        let allowed = ["acked", "expired", "already_read", "revoked", "conv_muted", "dnd"]
        for outcome in own where !allowed.contains(outcome.reason) {
            found(
                "acks",
                "\(event.eventID) of \(target.uid)'s \(target.device) was acknowledged, and ends as \(outcome.text)",
                event.messageID)
        }
    }

    /// Requests for an event to a user's device. While its token moves to another user, the outcome with the push's id says whose
    /// request it was.
    func pushes(of event: Sent, to device: String, of uid: String) -> [Observed.Push] {
        (pushesByMessage["\(event.app) \(event.messageID)"] ?? []).filter { push in
            if let told = outcomes[event.eventID]?.first(where: { $0.pid == push.pid }) {
                return told.uid == uid && told.device == device
            }
            return self.device(of: push.token, event.app, uid, at: push.atNanos) == device
        }
    }
}
