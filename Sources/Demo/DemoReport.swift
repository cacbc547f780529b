// SPDX-License-Identifier: Apache-2.0
import Console
import JSON

/// The demo's text for an event: one line for the event, and one line for each device with verdict and reason.
enum DemoReport {
    /// The signs and columns of the lines.
    static let legend: TerminalText = """
        each event, and below it the users or devices: verdict, reason, badge and text of the push
        ✓ accepted by APNs, or acknowledged   ✗ refused   – no push   ✎ SMS requested
        ⇢ delivered by way of a gateway; if no ack arrives in time, a push follows


        """

    static func text(_ outcome: EventOutcome) -> TerminalText {
        var text: TerminalText = "\(pad(name(outcome.event, "event_id"), 7)) \(headline(outcome.event))\n"
        if let why = outcome.deadLetter { return text + "        ✗ dead letter   \(why)\n" }
        // A delivery comes before the ack, or before the push that follows a missing ack.
        for target in outcome.deliveries { text += delivery(target, outcome) }
        for device in outcome.results { text += line(device) }
        if outcome.wantsSMS { text += "        ✎ push.sms        an SMS is requested\n" }
        if outcome.results.isEmpty, outcome.deliveries.isEmpty {
            text += "        · a repeat of an earlier event: no outcome\n"
        }
        return text
    }

    static func json(_ outcome: EventOutcome) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("event_id", ifPresent: outcome.event["event_id"]?.string)
        writer.member("dead_letter", ifPresent: outcome.deadLetter)
        writer.key("results")
        writer.beginArray()
        for device in outcome.results { writer.tree(device.result) }
        writer.endArray()
        writer.key("deliveries")
        writer.beginArray()
        for target in outcome.deliveries { writer.tree(target) }
        writer.endArray()
        writer.key("payloads")
        writer.beginArray()
        for case let payload? in outcome.results.map(\.payload) { writer.tree(payload) }
        writer.endArray()
        writer.member("sms", outcome.wantsSMS)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    static func summary(_ outcomes: [EventOutcome]) -> TerminalText {
        var counts: [String: Int] = [:]
        for device in outcomes.flatMap(\.results) {
            let name = device.reason == "ok" ? device.verdict : "\(device.verdict) (\(device.reason))"
            counts[name, default: 0] += 1
        }
        let letters = outcomes.count { $0.deadLetter != nil }
        let all = counts.values.reduce(0, +)
        var text: TerminalText = "\n\(counted(outcomes.count, "event")), \(counted(all, "outcome")): "
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        text += "\(sorted.map { "\($0.value) \($0.key)" }.joined(separator: ", "))"
        if letters > 0 { text += "; \(counted(letters, "dead letter"))" }
        return text + "\n"
    }

    // MARK: - Lines

    private static func headline(_ event: JSONTree) -> String {
        let kind = event["kind"]?.string ?? "record"
        if kind == "live_activity" {
            let activity = event["la"]
            return "live activity \(activity?["activity_id"]?.string ?? ""): \(activity?["event"]?.string ?? "")"
        }
        let conversation = event["conv"]
        let place = "\(conversation?["type"]?.string ?? "?") \(conversation?["id"]?.string ?? "?")"
        let from = event["from"]?["nick"]?.string ?? event["from"]?["uid"]?.string ?? "?"
        var words = ["\(kind) in \(place) from \(from.isEmpty ? "system" : from)"]
        if let push = event["push"] {
            if let content = push["content"]?.string { words.append("“\(content.prefix(48))”") }
            if push["silent"]?.bool == true { words.append("silent") }
            if push["enabled"]?.bool == false { words.append("push off") }
            if let mode = push["force"]?["mode"]?.string, mode != "none" {
                let named = (push["force"]?["uids"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
                words.append("force \(mode) \(named)")
            }
        }
        if let mention = event["mention"] {
            var who = (mention["uids"]?.array ?? []).compactMap(\.string)
            if mention["all"]?.bool == true { who.append("all") }
            words.append("@" + who.joined(separator: " @"))
        }
        return words.joined(separator: "  ")
    }

    private static func line(_ device: EventOutcome.Device) -> TerminalText {
        let mark = ["accepted": "✓", "online": "✓", "rejected": "✗"][device.verdict] ?? "–"
        let who = device.device.map { "\(device.uid)/\($0)" } ?? device.uid
        var text = "        \(mark) \(pad(who, 28)) \(pad(device.verdict, 11)) \(pad(device.reason, 16))"
        if let payload = device.payload { text += " " + shown(payload, device.result) }
        return "\(text.trimmingTrailingBlanks)\n"
    }

    /// The text that the device shows for a push.
    private static func shown(_ payload: JSONTree, _ result: JSONTree) -> String {
        let aps = payload["aps"]
        var words: [String] = []
        if let badge = result["badge"]?.int { words.append("badge \(badge)") }
        if let alert = aps?["alert"] {
            if let title = alert["title"]?.string { words.append("title “\(title)”") }
            words.append("“\(alert["body"]?.string ?? alert.string ?? "")”")
        }
        if aps?["content-available"] != nil { words.append("silent") }
        if let event = aps?["event"]?.string { words.append("activity \(event)") }
        return words.joined(separator: "  ")
    }

    /// A delivery without a result record: a message without an alert.
    private static func delivery(_ target: JSONTree, _ outcome: EventOutcome) -> TerminalText {
        let uid = name(target, "uid")
        let device = name(target, "device")
        let alert = target["alert"]?.bool == true ? "with an alert" : "without an alert"
        return "        ⇢ \(pad("\(uid)/\(device)", 28)) by the long connection, \(alert)\n"
    }

    private static func name(_ tree: JSONTree, _ key: String) -> String { tree[key]?.string ?? "?" }

    /// Columns count characters. Wide characters (汉字) take two cells.
    private static func pad(_ text: String, _ width: Int) -> String {
        let cells = text.unicodeScalars.reduce(0) { $0 + ($1.value >= 0x1100 ? 2 : 1) }
        return text + String(repeating: " ", count: max(0, width - cells))
    }
}

extension String {
    fileprivate var trimmingTrailingBlanks: String {
        var text = self[...]
        while text.last == " " { text = text.dropLast() }
        return String(text)
    }
}
