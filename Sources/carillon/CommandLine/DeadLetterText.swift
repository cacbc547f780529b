// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import JSON
import Recording
import Worker

/// Output of dead letters for people and programs.
enum DeadLetterText {
    /// Maximum bytes of a record in the output for people. Programs get all bytes.
    private static let shownBytes = 4_096
    private static let shownHeaders = 50

    // MARK: - list

    static func people(_ tally: DeadLetterTally, topic: String, nowMs: Int64) -> TerminalText {
        guard tally.count > 0 else { return "\(topic) holds none\n" }
        let count = tally.count == 1 ? "1 dead letter" : "\(tally.count) dead letters"
        var text: TerminalText = "\(Style.bold("\(count)")) in \(topic)\n"
        for group in tally.sorted {
            let place = group.path.map { " at \($0)" } ?? ""
            let cause = group.cause.isEmpty ? "no cause told" : group.cause
            text += "\n\(Style.bold("\(group.count)"))  \(cause)\(place)\n"
            let from = group.topic ?? "no topic told"
            text += "   from \(from), app \(group.app ?? "unknown"), \(ages(group, nowMs))\n"
            text += "   \(fate(group))\n"
        }
        if tally.ungrouped > 0 { text += "\n\(tally.ungrouped)  of further causes\n" }
        return text
    }

    private static func fate(_ group: DeadLetterTally.Group) -> TerminalText {
        let bad = group.count - group.accepted
        let why = group.rule.map { " (\($0))" } ?? ""
        if bad == 0 { return Style.green("would be accepted today") }
        if group.accepted > 0 { return Style.yellow("\(group.accepted) would be accepted today, \(bad) not\(why)") }
        return group.rule == nil
            ? Style.dim("it is unknown whether they would be accepted today")
            : Style.red("would be refused today\(why)")
    }

    private static func ages(_ group: DeadLetterTally.Group, _ nowMs: Int64) -> String {
        guard let oldest = group.oldestMs, let newest = group.newestMs else { return "of unknown age" }
        let (first, last) = (AgeText.short(nowMs &- oldest), AgeText.short(nowMs &- newest))
        return first == last ? "\(first) old" : "\(last) to \(first) old"
    }

    /// One object per group.
    static func json(_ tally: DeadLetterTally) -> String {
        tally.sorted.map { group in
            line { writer in
                writer.member("cause", group.cause)
                writer.member("path", ifPresent: group.path)
                writer.member("topic", ifPresent: group.topic)
                writer.member("app", ifPresent: group.app)
                writer.member("count", Int64(group.count))
                if let ms = group.oldestMs { writer.member("oldest_ms", ms) }
                if let ms = group.newestMs { writer.member("newest_ms", ms) }
                writer.member("accepted_today", Int64(group.accepted))
                writer.member("rule_today", ifPresent: group.rule)
            }
        }.joined()
    }

    // MARK: - show

    static func people(_ item: DeadLetterItem, topic: String, nowMs: Int64) -> TerminalText {
        var text = Style.bold("\(topic) \(item.partition):\(item.offset)")
        if let atMs = item.atMs {
            text += "  \(TimeText.iso(atMs, milliseconds: true))  \(Style.dim("\(AgeText.short(nowMs &- atMs)) old"))"
        }
        text += "\n"
        func row(_ name: TerminalText, _ value: TerminalText) {
            text += "  \(Style.dim(Style.padded(name, to: 9)))\(value)\n"
        }
        row("cause", Style.red("\(item.note.error.isEmpty ? "not told" : item.note.error)"))
        let partition = item.note.partition.map { " partition \($0)" } ?? ""
        let offset = item.note.offset.map { " offset \($0)" } ?? ""
        row("from", "\(item.note.topic ?? "not told")\(partition)\(offset)")
        switch item.judgement {
        case .accepted: row("today", Style.green("would be accepted"))
        case .bad(let bad): row("today", Style.red("refused (\(bad.rule.rawValue)): \(bad.header)"))
        case .unknown: row("today", "cannot be told")
        }
        row("key", "\(item.key.map(shown) ?? "none")")
        for header in DeadLetterNote.others(item.headers).prefix(shownHeaders) {
            row("header", "\(shown(Array(header.name.utf8))): \(header.value.map(shown) ?? "null")")
        }
        row("record", "\(item.value.map(shown) ?? "null")")
        return text + "\n"
    }

    private static func shown(_ bytes: [UInt8]) -> String {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return "0x" + Hex.string(bytes.prefix(shownBytes))
        }
        let cut = String(decoding: bytes.prefix(shownBytes), as: UTF8.self)
        return bytes.count > shownBytes ? "\(cut)… (\(bytes.count) bytes; --json shows all)" : cut
    }

    /// A recording's line, which `replay` can read, plus the position and the present verdict.
    static func json(_ item: DeadLetterItem) -> String {
        let record = RecordLine(
            topic: nil, key: item.key, value: item.value, timestampMs: item.atMs, headers: item.headers)
        var bytes = RecordLineWriter().bytes(of: record)
        // The last two bytes are the object's end and the line end.
        bytes.removeLast(2)
        var tail = JSONWriter()
        tail.beginObject()
        tail.member("partition", Int64(item.partition))
        tail.member("offset", item.offset)
        tail.member("cause", item.note.cause)
        tail.member("path", ifPresent: item.note.path)
        tail.member("source_topic", ifPresent: item.note.topic)
        if let partition = item.note.partition { tail.member("source_partition", Int64(partition)) }
        if let offset = item.note.offset { tail.member("source_offset", offset) }
        tail.member("app", ifPresent: item.app)
        if case .unknown = item.judgement {} else { tail.member("accepted_today", item.isAccepted) }
        tail.member("rule_today", ifPresent: item.judgement.rule)
        tail.endObject()
        return String(decoding: bytes + Array(",".utf8) + tail.bytes.dropFirst(), as: UTF8.self) + "\n"
    }

    // MARK: - redrive

    static func people(_ report: DeadLetterRedrive.Report) -> TerminalText {
        var text: TerminalText = "\(report.selected) selected"
        let done = report.isDryRun ? report.wanted : report.written
        for (topic, count) in done.sorted(by: { $0.key < $1.key }) {
            text += report.isDryRun ? ", \(count) would go to \(topic)" : ", \(count) written to \(topic)"
        }
        if done.isEmpty { text += ", none to be written" }
        text += "\n"
        for (rule, count) in report.stillBad.sorted(by: { $0.key < $1.key }) {
            text += Style.yellow("  \(count) left: would be refused again (\(rule))") + "\n"
        }
        if report.homeless > 0 {
            text +=
                Style.yellow("  \(report.homeless) left: no topic that the worker reads is known; name one with --to")
                + "\n"
        }
        if report.repeats > 0 { text += "  \(report.repeats) left: an earlier record is the same\n" }
        for (name, count) in report.failures.sorted(by: { $0.key < $1.key }) {
            text += Style.red("  \(count) not written: \(name)") + "\n"
        }
        if !report.isComplete { text += Style.red("INCOMPLETE: stopped, or a broker is down") + "\n" }
        return text
    }

    static func json(_ report: DeadLetterRedrive.Report) -> String {
        line { writer in
            writer.member("selected", Int64(report.selected))
            writer.member("dry_run", report.isDryRun)
            counts("wanted", report.wanted, &writer)
            counts("written", report.written, &writer)
            counts("refused_again", report.stillBad, &writer)
            writer.member("without_topic", Int64(report.homeless))
            writer.member("repeats", Int64(report.repeats))
            counts("failures", report.failures, &writer)
            writer.member("complete", report.isComplete)
        }
    }

    private static func counts(_ name: StaticString, _ counts: [String: Int], _ writer: inout JSONWriter) {
        writer.key(name)
        writer.beginObject()
        for (key, count) in counts.sorted(by: { $0.key < $1.key }) {
            writer.key(escaping: key)
            writer.int(count)
        }
        writer.endObject()
    }

    private static func line(_ fill: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        fill(&writer)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
