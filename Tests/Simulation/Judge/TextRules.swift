// SPDX-License-Identifier: Apache-2.0
import Crypto

/// What a push says: its payload and headers are those of the contract, exactly.
extension Judge {
    mutating func checkTexts() {
        for push in observed.pushes {
            guard let payload = push.payload, let event = event(of: push) else { continue }
            if let why = faultHeaders(push, event) ?? faultPayload(push, payload, event) {
                found("the payload", "\(event.messageID) to …\(push.token.suffix(4)): \(why)", event.messageID)
            }
        }
    }

    // MARK: Headers

    private func faultHeaders(_ push: Observed.Push, _ event: Sent) -> String? {
        let suffix = event.kind == .activity ? ".push-type.liveactivity" : event.push.isVoip ? ".voip" : ""
        if push.topic != "com.example.\(event.app)\(suffix)" { return "its topic is \(push.topic)" }
        var priority: Int64 = 10
        switch event.push.priority {
        case "normal": priority = 5
        case "low": priority = 1
        default: break
        }
        if event.push.isSilent { priority = 5 }
        if push.priority != priority { return "its priority is \(push.priority ?? -1), not \(priority)" }
        if event.kind != .activity, !event.push.isVoip {
            let ms = event.push.expireMs ?? event.sentMs + 86_400_000
            let earliest = event.push.expireMs == nil ? ms - setBackMs : ms
            if !(max(1, earliest / 1000)...max(1, ms / 1000)).contains(push.expiration ?? -1) {
                return "its expiration is \(push.expiration ?? -1), not \(ms / 1000)"
            }
        }
        if let why = faultCollapse(push, event) { return why }
        return push.bytes > (event.push.isVoip ? 5120 : 4096) ? "it has \(push.bytes) bytes" : nil
    }

    private func faultCollapse(_ push: Observed.Push, _ event: Sent) -> String? {
        guard event.kind != .activity, event.kind != .revoke, !mayBeSeveral(event), let given = event.push.collapseID
        else {
            return nil
        }
        let wanted = given.utf8.count > 64 ? SHA256.hex(Array(given.utf8)) : given
        return push.collapseID == wanted ? nil : "its collapse id is \(push.collapseID)"
    }

    /// All pushes of a message have one collapse id, no other message of the app has it, and its revoke has it too.
    mutating func checkCollapseIDs() {
        var ids: [String: String] = [:]
        var messages: [String: String] = [:]
        for push in observed.pushes where push.payload != nil {
            guard let event = event(of: push), event.kind == .message || event.kind == .probe, !mayBeSeveral(event)
            else {
                continue
            }
            let name = "\(event.app) \(event.messageID)"
            if let id = ids[name], id != push.collapseID {
                found("collapse ids", "\(event.messageID) has \(id) and \(push.collapseID)", event.messageID)
            }
            ids[name] = push.collapseID
            let owner = messages["\(event.app) \(push.collapseID)"] ?? name
            if owner != name, event.push.collapseID == nil {
                found("collapse ids", "\(event.messageID) has that of \(owner)", event.messageID)
            }
            messages["\(event.app) \(push.collapseID)"] = owner
        }
        for push in observed.pushes where push.payload != nil {
            guard let event = event(of: push), event.kind == .revoke, let target = event.target,
                let id = ids["\(event.app) \(target)"],
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos),
                let original = events["\(event.app) \(target)"], !mayHaveLost(original, uid),
                wasDecided(original, uid, before: event.atNanos)
            else { continue }
            if push.collapseID != id, !allowance.refusesWrites, allowance.losses.isEmpty {
                found("collapse ids", "\(event.messageID) revokes \(target), and has not its id", event.messageID)
            }
        }
    }

    private func wasDecided(_ event: Sent, _ uid: String, before nanos: UInt64) -> Bool {
        (outcomes[event.eventID] ?? []).contains { $0.uid == uid && $0.verdict == "accepted" && $0.atNanos < nanos }
    }

    /// The alert may stand for several messages.
    func mayBeSeveral(_ event: Sent) -> Bool {
        let settings = app(event.app)
        return settings.burstTenths > 0 || settings.sendsDigests
    }

    // MARK: The payload

    private func faultPayload(_ push: Observed.Push, _ payload: JudgeJSON, _ event: Sent) -> String? {
        guard case .object(var keys) = payload, case .object(var aps)? = keys.removeValue(forKey: "aps") else {
            return "it is no object with aps"
        }
        let pid = keys.removeValue(forKey: "pid")
        if event.kind == .activity { return faultActivity(aps, event) }
        if pid?.text != push.pid { return "its pid is not its apns-id" }
        let badge = aps.removeValue(forKey: "badge")
        let settings = app(event.app)
        if settings.badge == .sender {
            let given = event.push.isSilent ? nil : event.push.givenBadge
            if badge?.number != given, !event.push.isVoip { return "the sender's badge is not \(given ?? -1)" }
        }
        guard let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos) else { return nil }
        let candidates = candidates(push, event, uid, body: push.body ?? "")
        if event.push.isSilent {
            if aps != ["content-available": .number(1)] { return "its aps is \(Self.text(aps))" }
            return faultKeys(keys, candidates)
        }
        if let why = faultKeys(keys, candidates) { return why }
        if event.push.isVoip || candidates.isEmpty { return nil }
        if candidates.contains(where: { isSame(aps, $0, push) }) { return nil }
        let wanted = candidates.first.map { Self.text($0.alert) } ?? ""
        return "its aps is \(Self.text(aps)), not \(wanted)"
    }

    private func faultKeys(_ keys: [String: JudgeJSON], _ candidates: [Expected]) -> String? {
        if candidates.isEmpty { return nil }
        let isRight = candidates.contains { candidate in
            // A revoke that does not count for this recipient has no `revoke_counts`.
            var uncounted = candidate.keys
            uncounted["revoke_counts"] = nil
            guard candidate.lowersNumber == nil else { return candidate.keys == keys || uncounted == keys }
            var lowered = candidate
            lowered.lowersNumber = true
            return candidate.keys == keys || lowered.keys == keys
        }
        return isRight ? nil : "it has \(Self.text(keys)), not \(candidates.first.map { Self.text($0.keys) } ?? "")"
    }

    private static func text(_ members: [String: JudgeJSON]) -> String {
        String(members.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ").prefix(400))
    }

    private func isSame(_ aps: [String: JudgeJSON], _ candidate: Expected, _ push: Observed.Push) -> Bool {
        var aps = aps
        var wanted = candidate.alert
        if candidate.isMutable == nil {
            aps["mutable-content"] = nil
            wanted["mutable-content"] = nil
        }
        if aps == wanted { return true }
        // A body that is cut: as little as possible.
        guard let body = push.body, body.hasSuffix("…") else { return false }
        let (kept, whole) = (body.dropLast(), candidate.body)
        guard whole.hasPrefix(kept), let next = whole.dropFirst(kept.count).first, let alert = aps["alert"] else {
            return false
        }
        let full = push.bytes - body.utf8.count + whole.utf8.count
        let more = push.bytes + String(next).utf8.count
        guard full > 4096, more > 4096, case .object(var members) = alert else { return false }
        members["body"] = .text(whole)
        aps["alert"] = .object(members)
        return aps == wanted
    }

    /// A client reported its number after the message and before its push, which had waited: the message may be in it.
    private func mayBeReported(_ event: Sent, _ history: History, by nanos: UInt64) -> Bool {
        history.states.contains { state in
            guard case .report(_, let ms) = state.kind else { return false }
            return state.atNanos <= nanos && ms + clock.slackMs >= event.sentMs
        }
    }

    /// All payloads that the facts allow.
    private func candidates(_ push: Observed.Push, _ event: Sent, _ uid: String, body: String) -> [Expected] {
        let (history, settings) = (history(event.app, uid), app(event.app))
        let (from, to) = (event.atNanos, push.atNanos)
        let steps = steps(event, uid, until: to)
        var base = Expected(event: event, app: settings, uid: uid, isForced: steps.isForced)
        if mayBeSeveral(event) { base.merged = Self.number(in: body) }
        base.isMutable = event.push.isMutable
        if settings.badge == .none, event.push.isMutable {
            base.isMutable =
                event.kind == .revoke ? nil : steps.counts == .always ? true : steps.counts == .never ? false : nil
            if mayRepeat || event.isDoubled || base.merged > 1 || mayBeReported(event, history, by: to) {
                base.isMutable = nil
            }
        }
        if event.kind != .revoke || event.revokeBadge != "decrease" { base.lowersNumber = false }
        let shown = event.push.forcesDetail ? [true] : history.shows(from: from, to: to)
        let languages = history.languages(from: from, to: to)
        var tokens: [History.Token] = []
        for wallet in history.wallets(from: from, to: to) {
            if let token = wallet.first(where: { $0.hex == push.token }), !tokens.contains(token) {
                tokens.append(token)
            }
        }
        if tokens.count * languages.count * shown.count > 16 { return [] }
        var candidates: [Expected] = []
        for shows in shown {
            for token in tokens {
                for language in languages {
                    var candidate = base
                    candidate.isHidden = !shows
                    for words in history.mayLoseTokens ? token.words : Array(token.words.prefix(1)) {
                        candidate.language = words.language ?? language
                        candidate.contentKey = words.contentKey
                        candidates.append(candidate)
                    }
                }
            }
        }
        return candidates
    }

    /// The number that a merged alert begins with; 0: none.
    static func number(in body: String) -> Int { Int(body.prefix { $0.isASCII && $0.isNumber }) ?? 0 }

    private func faultActivity(_ aps: [String: JudgeJSON], _ event: Sent) -> String? {
        guard let activity = event.activity else { return nil }
        let seconds = aps["timestamp"]?.number ?? -1
        let latest = event.sentMs / 1000
        let isInTime = ((event.sentMs - setBackMs) / 1000...latest).contains(seconds)
        var wanted: [String: JudgeJSON] = [
            "timestamp": .number(isInTime ? seconds : latest), "event": .text(activity.step.rawValue),
            "content-state": .object(["event": .text(event.eventID)]),
        ]
        if activity.step == .start {
            wanted["attributes-type"] = .text("Ride")
            wanted["attributes"] = .object([:])
            wanted["alert"] = .object(["title": .text("T"), "body": .text("B")])
        }
        return aps == wanted ? nil : "its aps is \(Self.text(aps)), not \(Self.text(wanted))"
    }
}
