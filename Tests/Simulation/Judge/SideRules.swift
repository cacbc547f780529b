// SPDX-License-Identifier: Apache-2.0
/// `push.sms` and `push.feedback`: each record has its cause, and is there where it must be.
extension Judge {
    mutating func checkSideRecords() {
        checkSMS()
        checkFeedback()
    }

    private mutating func checkSMS() {
        var seen: Set<String> = []
        for sms in observed.sms {
            guard let event = sentByID["\(sms.app) \(sms.eventID)"] else {
                found("SMS", "\(sms.eventID) is no event", "")
                continue
            }
            let name = "\(event.eventID) of \(sms.uid)"
            if !event.push.wantsSMS { found("SMS", "\(name): none was wanted", event.messageID) }
            if !event.recipients.contains(sms.uid) { found("SMS", "\(name) is no recipient", event.messageID) }
            if !seen.insert("\(sms.app) \(name)").inserted, !mayRepeat, !event.isDoubled {
                found("SMS", "\(name) is asked for twice", event.messageID)
            }
            let phones = history(event.app, sms.uid).possible(
                from: event.atNanos, to: sms.atNanos, first: String?.none
            ) { _, kind in
                if case .phone(let number) = kind { .some(number.isEmpty ? nil : number) } else { nil }
            }
            if !phones.contains(sms.phone) { found("SMS", "\(name) has another phone", event.messageID) }
            let own = (outcomes[event.eventID] ?? []).filter { $0.uid == sms.uid }
            if own.contains(where: { $0.verdict == "accepted" || $0.reason == "acked" }), !mayRepeat, !event.isDoubled {
                found("SMS", "\(name): a push reached the user", event.messageID)
            }
            if sms.reason == "no_token", own.contains(where: { $0.isFinal && !$0.pid.isEmpty }), !mayRepeat,
                !event.isDoubled
            {
                found("SMS", "\(name): there was a token", event.messageID)
            }
        }
        guard !mayRepeat, allowance.losses.isEmpty else { return }
        for event in sent where event.push.wantsSMS && !event.isDoubled && event.kind == .message {
            for uid in event.recipients where !seen.contains("\(event.app) \(event.eventID) of \(uid)") {
                let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
                let history = history(event.app, uid)
                let until = own.map(\.atNanos).max() ?? 0
                let isLive = history.connected.contains { history.mayBeLive($0, from: event.atNanos, to: until) }
                if !own.isEmpty, own.allSatisfy({ $0.reason == "no_token" && $0.device.isEmpty }), !isLive {
                    found("SMS", "\(event.eventID) of \(uid) has no token, and none is asked for", event.messageID)
                }
            }
        }
    }

    private mutating func checkFeedback() {
        for feedback in observed.feedback {
            let name = "…\(feedback.token.suffix(4)) of \(feedback.uid)"
            let causes = observed.pushes.contains { push in
                push.token == feedback.token && push.reason == feedback.cause && push.atNanos <= feedback.atNanos
                    && [400, 410].contains(push.status ?? 0)
            }
            if !causes { found("feedback", "\(name): APNs did not say so", "") }
            if let dead = answers.first(where: { $0.token == feedback.token }), dead.status == 410,
                let timestampMs = dead.timestampMs, timestampMs <= feedback.boundMs
            {
                found("feedback", "\(name): the token was bound after it was dead", "")
            }
            let binds = (tokens[feedback.token] ?? []).filter { $0.tokenType != nil }
            let isBound = binds.contains { bind in
                guard case .bind(feedback.device, _, _) = bind.kind else { return false }
                return bind.uid == feedback.uid
                    && (bind.sentMs - setBackMs...bind.sentMs).contains(feedback.boundMs)
            }
            if !isBound {
                found("feedback", "\(name) was not bound then", "")
            }
        }
        // A dead token that APNs refused is removed, and gets no push after that.
        guard allowance.losses.isEmpty, !allowance.refusesWrites else { return }
        for dead in answers where dead.token != nil {
            guard let token = dead.token,
                let refusal = observed.pushes.first(where: {
                    $0.token == token && $0.status == dead.status && $0.isAnswered
                }),
                let bind = (tokens[token] ?? []).last(where: { $0.atNanos <= refusal.atNanos })
            else { continue }
            let isRemoved = observed.feedback.contains { $0.token == token }
            let isDead = dead.status != 410 || dead.timestampMs.map { $0 > bind.sentMs } ?? true
            let isSteady =
                observed.applied(bind) < refusal.atNanos && (tokens[token] ?? []).last?.eventID == bind.eventID
            if isDead, isSteady, !isRemoved, !mayRepeat {
                found(
                    "feedback", "…\(token.suffix(4)) of \(bind.uid) is dead, and was not removed",
                    refusal.messageID ?? "")
            }
            guard isDead, isSteady, let removal = observed.feedback.first(where: { $0.token == token }) else {
                continue
            }
            for push in observed.pushes where push.token == token && push.atNanos > removal.atNanos {
                guard let event = event(of: push), event.atNanos > removal.atNanos &+ slackNanos else { continue }
                found("feedback", "\(event.messageID) went to …\(token.suffix(4)), which was removed", event.messageID)
            }
        }
    }
}
