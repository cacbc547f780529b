// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

/// Compares the claims of the episodes with the observed records and pushes. A fault of the world may change the end of an episode, so
/// that only worlds without faults are judged.
struct EpisodeJudge {
    let observed: Observed
    let app: AppSettings
    private let outcomes: [String: [Observed.Outcome]]
    private let pushes: [String: [Observed.Push]]
    private(set) var violations: [Violation] = []

    init(_ observed: Observed, app: AppSettings) {
        self.observed = observed
        self.app = app
        outcomes = Dictionary(grouping: observed.outcomes.filter { $0.app == Episode.app }) { $0.eventID }
        pushes = Dictionary(grouping: observed.pushes.filter { $0.app == Episode.app }) { $0.pid }
    }

    mutating func judge(_ name: String, _ claims: [Episode.Claim]) {
        for claim in claims {
            guard let why = fault(claim) else { continue }
            violations.append(Violation(rule: "an episode's end", text: "\(name): \(why.text)", message: why.message))
        }
    }

    private struct Fault {
        var text: String
        var message: String
    }

    private func fault(_ claim: Episode.Claim) -> Fault? {
        func fault(_ note: SentNote, _ text: String) -> Fault {
            Fault(text: "\(note.eventID) \(text)", message: note.messageID)
        }
        switch claim {
        case .ends(let note, let uid, let wanted):
            let own = (outcomes[note.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
            let found = own.map { "\($0.device): \($0.verdict) \($0.reason)" }.sorted()
            let all = wanted.map { "\($0.key): \($0.value)" }.sorted()
            return found == all ? nil : fault(note, "of \(uid) ends as \(found), not \(all)")
        case .accepted(let note, let token, let count):
            let own = requests(note).filter { $0.token == token && $0.status == 200 }
            return own.count == count
                ? nil : fault(note, "was accepted \(own.count) times at …\(token.suffix(4)), not \(count)")
        case .counts(let note, let device, let number):
            guard let push = push(note, device) else { return fault(note, "has no push to \(device)") }
            let wanted = shown(number, in: push)
            return push.badge == wanted ? nil : fault(note, "has the number \(push.badge ?? -1), not \(wanted ?? -1)")
        case .rises(let notes, let device):
            var least: Int64 = 0
            for (place, note) in notes.enumerated() {
                guard let push = push(note, device) else { return fault(note, "has no push to \(device)") }
                least = max(least, Int64(place + 1))
                let most = max(least, Int64(notes.count))
                guard (least...most).contains(where: { shown($0, in: push) == push.badge }) else {
                    return fault(note, "has the number \(push.badge ?? -1), not \(least) to \(most)")
                }
                least = push.badge ?? least
            }
            return nil
        case .has(let note, let device, let path, let wanted):
            guard let payload = push(note, device)?.payload else { return fault(note, "has no push to \(device)") }
            if path == "aps.mutable-content", app.badge == .none, wanted != nil { return nil }
            if path == "im", !app.isCommunication { return nil }
            let found = path.split(separator: ".").reduce(JudgeJSON?.some(payload)) { $0?[String($1)] }
            return found == wanted ? nil : fault(note, "has \(path) \(text(found)), not \(text(wanted))")
        case .custom(let note, let device, let key, let wanted):
            return custom(note, device, key, wanted).map { fault(note, $0) }
        case .header(let note, let device, let words):
            guard let push = push(note, device) else { return fault(note, "has no push to \(device)") }
            return header(push, note, words).map { fault(note, $0) }
        case .came(let note, let device, let seconds):
            guard let push = push(note, device) ?? requests(note, device).last else {
                return fault(note, "has no push to \(device)")
            }
            let took = Double(push.atNanos - note.atNanos) / 1e9
            return took >= seconds.lowerBound - 0.15 && took <= seconds.upperBound
                ? nil : fault(note, "came to \(device) after \(took) s, not \(seconds)")
        case .attempts(let note, let device, let count):
            let own = outcome(note, device)
            return own?.attempts == count ? nil : fault(note, "has \(own?.attempts ?? -1) attempts, not \(count)")
        case .result(let note, let wanted):
            let found = observed.results[note.eventID]?.outcome ?? "none"
            let isRight = wanted.hasPrefix("!") ? found != wanted.dropFirst() && found != "none" : found == wanted
            return isRight ? nil : fault(note, "is \(found), not \(wanted)")
        case .delivery(let note, let device, let alerts):
            let own = observed.deliveries.filter { $0.eventID == note.eventID && $0.device == device }
            if alerts == nil { return own.isEmpty ? nil : fault(note, "was delivered to \(device)") }
            return own.count == 1 && own[0].alerts == alerts
                ? nil : fault(note, "has \(own.count) deliveries to \(device), alert \(own.first?.alerts ?? false)")
        case .sms(let note, let phone, let reason, let body):
            let own = observed.sms.filter { $0.eventID == note.eventID && $0.app == Episode.app }
            guard let reason else { return own.isEmpty ? nil : fault(note, "has an SMS") }
            guard own.count == 1, let sms = own.first else { return fault(note, "has \(own.count) SMS") }
            return sms.phone == phone && sms.reason == reason && sms.body == body
                ? nil : fault(note, "has an SMS to \(sms.phone ?? "none"): \(sms.reason), \(sms.body ?? "none")")
        case .feedback(let token, let isThere):
            let count = observed.feedback.count { $0.token == token }
            return count == (isThere ? 1 : 0)
                ? nil : Fault(text: "…\(token.suffix(4)) has \(count) feedback", message: "")
        case .feedbacks(let tokens, let range):
            let count = observed.feedback.count { tokens.contains($0.token) }
            return range.contains(count)
                ? nil : Fault(text: "\(count) of \(tokens.count) tokens are removed, not \(range)", message: "")
        case .deadLetter(let note, let words):
            let own = observed.letters.filter { $0.value.contains(note.eventID) }
            return own.count == 1 && own[0].error.contains(words)
                ? nil : fault(note, "has \(own.count) dead letters: \(own.first?.error ?? ""), not \(words)")
        case .shows(let token, let number, let note):
            let own = observed.pushes.filter {
                $0.token == token && $0.body == nil && $0.atNanos >= note.atNanos && $0.status == 200
            }
            let wanted = app.badgeCap > 0 ? min(app.badgeCap, number) : number
            return own.contains { $0.badge == wanted }
                ? nil : fault(note, "does not show \(wanted) at …\(token.suffix(4))")
        case .apart(let notes, let token, let seconds):
            let times = notes.compactMap { note in requests(note).first { $0.token == token }?.atNanos }.sorted()
            let isApart = zip(times, times.dropFirst()).allSatisfy { Double($1 - $0) / 1e9 >= seconds }
            return isApart && times.count == notes.count
                ? nil : Fault(text: "requests of …\(token.suffix(4)) overlap", message: notes.first?.messageID ?? "")
        case .order(let notes, let token):
            let places = notes.compactMap { note in
                observed.pushes.lastIndex { $0.token == token && $0.status == 200 && $0.messageID == note.messageID }
            }
            return places.count == notes.count && places == places.sorted()
                ? nil : Fault(text: "…\(token.suffix(4)) has another order", message: notes.first?.messageID ?? "")
        case .digest(let token, let count):
            let own = observed.pushes.filter { $0.token == token && $0.messageID?.hasPrefix("digest-") == true }
            let merged = SimulatedTexts.of(app.defaultLanguage).merged
            let texts = "\(count)" + (count == 1 ? merged.one : merged.other)
            return own.count == 1 && own[0].body == texts && own[0].badge == Int64(count)
                ? nil : Fault(text: "\(own.count) digests: \(own.first?.body ?? "none"), not \(texts)", message: "")
        case .sameCollapse(let one, let other):
            let (first, second) = (requests(one).first?.collapseID, requests(other).first?.collapseID)
            return first != nil && first == second ? nil : fault(other, "has another collapse id")
        case .broadcasts(let channel, let count):
            let own = observed.pushes.filter { $0.channel == channel && $0.status == 200 }
            let isFit = own.allSatisfy { $0.topic.isEmpty && $0.expiration == 0 && $0.type == "liveactivity" }
            guard own.count == count, isFit else {
                return Fault(text: "\(own.count) broadcasts to \(channel), not \(count), fit: \(isFit)", message: "")
            }
            return nil
        case .credential(let note, let device, let name):
            let own = outcome(note, device)
            return own?.credential == name ? nil : fault(note, "has the credential \(own?.credential ?? "none")")
        }
    }

    /// Requests for an event.
    private func requests(_ note: SentNote) -> [Observed.Push] {
        observed.pushes.filter { $0.app == Episode.app && $0.messageID == note.messageID }
            + (outcomes[note.eventID] ?? []).flatMap { $0.pid.isEmpty ? [] : pushes[$0.pid] ?? [] }
            .filter { $0.messageID != note.messageID }
    }

    /// The end of a device.
    private func outcome(_ note: SentNote, _ device: String) -> Observed.Outcome? {
        (outcomes[note.eventID] ?? []).first { $0.device == device && $0.isFinal }
    }

    /// The requests with the push id of a device's end.
    private func requests(_ note: SentNote, _ device: String) -> [Observed.Push] {
        outcome(note, device).flatMap { pushes[$0.pid] } ?? []
    }

    /// The accepted request of a device.
    private func push(_ note: SentNote, _ device: String) -> Observed.Push? {
        requests(note, device).last { $0.status == 200 }
    }

    /// How the app's settings show a number of unread messages.
    private func shown(_ number: Int64?, in push: Observed.Push) -> Int64? {
        switch app.badge {
        case .server: number.map { app.badgeCap > 0 ? min(app.badgeCap, $0) : $0 }
        case .none: nil
        case .sender: push.payload?["aps"]?["own"] == nil ? nil : number
        }
    }

    private func text(_ json: JudgeJSON?) -> String { json.map { "\($0)" } ?? "none" }

    /// Where the profile has custom keys.
    private func custom(_ note: SentNote, _ device: String, _ key: String, _ wanted: JudgeJSON?) -> String? {
        guard let payload = push(note, device)?.payload else { return "has no push to \(device)" }
        var place: JudgeJSON? = app.profile == "wps" ? payload["message"]?["params"] : payload
        if key == "revoke_msg_id" { return place?[key] != nil ? nil : "has no revoke_msg_id" }
        if app.profile == "rc" { place = payload["appData"]?.text.flatMap { JudgeJSON(Array($0.utf8)) } }
        return place?[key] == wanted ? nil : "has the key \(key) \(text(place?[key])), not \(text(wanted))"
    }

    private func header(_ push: Observed.Push, _ note: SentNote, _ words: String) -> String? {
        let parts = words.split(separator: " ", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { return "what is \(words)?" }
        switch parts[0] {
        case "topic": return push.topic == parts[1] ? nil : "has the topic \(push.topic)"
        case "priority": return push.priority == Int64(parts[1]) ? nil : "has the priority \(push.priority ?? -1)"
        case "expiration":
            return push.expiration == Int64(parts[1]) ? nil : "has the expiration \(push.expiration ?? -1)"
        case "collapse": return push.collapseID == parts[1] ? nil : "has the collapse id \(push.collapseID)"
        case "lives":
            let lives = (push.expiration ?? 0) - note.writtenMs / 1000
            return abs(lives - (Int64(parts[1]) ?? 0)) <= 4 ? nil : "lives \(lives) s, not \(parts[1])"
        case "full":
            // Uncut, or cut so that not one more character fits.
            let isCut = push.body?.hasSuffix("…") == true
            return !isCut || push.bytes > 4096 - 3 && push.bytes <= 4096 ? nil : "is cut to \(push.bytes) bytes"
        default: return "what is \(words)?"
        }
    }
}
