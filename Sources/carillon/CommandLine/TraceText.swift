// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import PushCore
import Worker

/// Output of traces for people and programs.
enum TraceText {
    // MARK: - People

    static func people(_ records: [TraceRecord], app: String, uid: String, hours: Int) -> TerminalText {
        let count = records.count == 1 ? "1 event" : "\(records.count) events"
        var text: TerminalText = "\(Style.bold("\(uid)")) of app \(app): \(count) in the last \(hours) h\n"
        for record in records { text += "\n" + people(record) }
        return text
    }

    private static func people(_ record: TraceRecord) -> TerminalText {
        var head: TerminalText = "\(time(record.atMs))  \(Style.bold("\(record.title)"))"
        if record.msgID != record.eventID { head += "  event \(record.eventID)" }
        head += "  \(Style.dim("\(age(record))"))"
        if record.isResumed { head += Style.yellow("  resumed after an earlier try") }
        var text = head + "\n"
        for sentence in TraceSentence.all(record) { text += "  \(Style.bold("\(sentence.text)"))\n" }
        for step in record.facts.steps {
            let mark = step.passes ? Style.green("✓") : Style.red("✗")
            let number = step.step.rawValue < 10 ? " \(step.step.rawValue)" : "\(step.step.rawValue)"
            let input: TerminalText = step.input.isEmpty ? "" : Style.dim("  (\(step.input))")
            text += "  \(mark) \(number) \(Style.padded("\(step.step.title)", to: 12)) \(step.outcome)\(input)\n"
        }
        for device in record.devices { text += people(device, of: record) }
        return text
    }

    private static func people(_ device: TraceRecord.Device, of record: TraceRecord) -> TerminalText {
        var parts: [TerminalText] = [
            "  → \(Style.padded("\(device.device ?? "the user")", to: 16))",
            "\(colored(device.verdict))  \(device.reason)",
        ]
        if let status = device.status { parts.append("status \(status)") }
        if let badge = device.badge { parts.append("badge \(badge)") }
        if device.attempts > 0 {
            parts.append("\(device.latencyMs) ms since Kafka's time")
            parts.append(device.attempts == 1 ? "1 attempt" : "\(device.attempts) attempts")
        }
        if let id = device.pushID, device.attempts > 0 { parts.append(Style.dim("apns_id \(id)")) }
        if device.atMs != record.atMs {
            parts.append(Style.dim("\(device.atMs &- record.atMs) ms after the first outcome"))
        }
        return parts.joined(separator: "  ") + "\n"
    }

    private static func colored(_ verdict: Verdict) -> TerminalText {
        switch verdict {
        case .accepted, .online: Style.green("\(verdict.rawValue)")
        case .rejected: Style.red("\(verdict.rawValue)")
        case .expired, .suppressed, .parked: Style.yellow("\(verdict.rawValue)")
        }
    }

    private static func age(_ record: TraceRecord) -> String {
        let ms = record.atMs &- record.sentMs
        return ms < 0
            ? "first outcome \(ms.magnitude) ms before it was sent, by its producer's clock"
            : "first outcome \(ms) ms after it was sent"
    }

    private static func time(_ ms: Int64) -> String { TimeText.iso(ms, milliseconds: true) }

    static func people(_ push: WaitingPush) -> TerminalText {
        switch push.what {
        case .event(let kind, let id):
            "\n\(Style.yellow("waits"))  \(Style.bold("\(kind.title) \(id)")) has begun and not ended\n"
        case .parked(let device, let dueMs, let isAPNsAsking):
            "\n\(Style.yellow("waits"))  a push to \(device) in carillon.parked, looked at again \(time(dueMs))"
                + (isAPNsAsking ? ": APNs answered 429 and wants the device left alone\n" : "\n")
        }
    }

    // MARK: - Programs

    static func json(_ push: WaitingPush, app: String, uid: String) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("app", app)
        writer.member("uid", uid)
        writer.member("waiting", true)
        switch push.what {
        case .event(let kind, let id):
            writer.member("kind", kind.title)
            writer.member("msg_id", id)
        case .parked(let device, let dueMs, let isAPNsAsking):
            writer.member("device", device)
            writer.member("due_ms", dueMs)
            if isAPNsAsking { writer.member("status", 429) }
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    /// One object per line.
    static func json(_ record: TraceRecord, app: String, uid: String) -> String {
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.member("app", app)
        writer.member("uid", uid)
        writer.member("at_ms", record.atMs)
        writer.member("sent_ms", record.sentMs)
        writer.member("kind", record.kind.title)
        writer.member("msg_id", record.msgID)
        writer.member("event_id", record.eventID)
        writer.member("resumed", record.isResumed)
        writer.key("steps")
        writer.beginArray()
        for step in record.facts.steps {
            writer.beginObject()
            writer.member("step", Int64(step.step.rawValue))
            writer.member("input", step.input)
            writer.member("outcome", step.outcome)
            writer.endObject()
        }
        writer.endArray()
        writer.key("outcomes")
        writer.beginArray()
        for device in record.devices { write(device, to: &writer) }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    private static func write(_ device: TraceRecord.Device, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("device", ifPresent: device.device)
        writer.member("verdict", device.verdict.rawValue)
        writer.member("reason", device.reason)
        if let id = device.pushID { writer.member("apns_id", id.description) }
        if let status = device.status { writer.member("status", Int64(status)) }
        if let badge = device.badge { writer.member("badge", badge) }
        writer.member("attempts", Int64(device.attempts))
        writer.member("latency_ms", device.latencyMs)
        writer.member("at_ms", device.atMs)
        writer.endObject()
    }
}
