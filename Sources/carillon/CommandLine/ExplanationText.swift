// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import JSON
import PushCore
import Worker

/// Output of explanations for people and programs.
enum ExplanationText {
    // MARK: - People

    /// Verdicts first, each with its indented steps. Steps that all devices of a user share appear once.
    static func people(_ report: RecordExplanation, place: String, membersMax: Int) -> TerminalText {
        var text = Style.bold("\(place): \(report.title ?? "bad record")") + "\n"
        for field in report.unknownFields { text += Style.yellow("  note: \(field.words)") + "\n" }
        var told: [Explanation.Step] = []
        var uid: String?
        for explanation in report.explanations {
            if !explanation.uid.isSame(as: uid) { told = [] }
            uid = explanation.uid
            text += head(explanation)
            for step in explanation.steps where !told.contains(step) { text += line(step) }
            if explanation.steps.contains(where: told.contains) {
                text += Style.dim("      the other steps as above") + "\n"
            }
            told += explanation.steps
            for header in explanation.headers {
                text += "       \(Style.dim(Style.padded("\(header.name)", to: 18)))\(header.value)\n"
            }
            if let payload = explanation.payload {
                let bytes = String(decoding: payload, as: UTF8.self)
                text += "       \(Style.dim(Style.padded("payload", to: 18)))\(bytes)\n"
            }
        }
        if report.explanations.isEmpty { text += "  no user: the group has no members, or none was given\n" }
        if report.isCut { text += Style.yellow("  … only \(membersMax) members; --members N looks at more") + "\n" }
        return text
    }

    private static func head(_ explanation: Explanation) -> TerminalText {
        let way = explanation.route == .none ? "" : " → \(explanation.route.rawValue)"
        var subject = explanation.uid
        if let device = explanation.device { subject += " / \(device)" }
        if subject.isEmpty { subject = "—" }
        let verdict: TerminalText
        switch explanation.verdict {
        case Verdict.accepted.rawValue: verdict = Style.green("accepted-if-sent")
        case Verdict.online.rawValue: verdict = Style.green("online")
        case "state_change": verdict = Style.green("\(explanation.verdict)")
        case "dead_letter": verdict = Style.red("\(explanation.verdict)")
        default: verdict = Style.yellow("\(explanation.verdict)")
        }
        let reason = explanation.reason == explanation.verdict ? "" : "  \(explanation.reason)"
        return "  \(Style.bold("\(subject + way)"))  \(verdict)\(reason)\n"
    }

    private static func line(_ step: Explanation.Step) -> TerminalText {
        let mark = step.passes ? Style.green("✓") : Style.red("✗")
        let number = step.number < 10 ? " \(step.number)" : "\(step.number)"
        return "    \(mark) \(number) \(Style.padded("\(step.name)", to: 12)) \(step.outcome)  "
            + Style.dim("(\(step.input))") + "\n"
    }

    // MARK: - Programs

    /// One object per line (contract section 7).
    static func json(_ report: RecordExplanation) -> String {
        var text = ""
        for explanation in report.explanations {
            var writer = JSONWriter(reservingCapacity: 1024)
            write(explanation, report.unknownFields, to: &writer)
            text += String(decoding: writer.bytes, as: UTF8.self) + "\n"
        }
        return text
    }

    private static func write(
        _ explanation: Explanation, _ unknownFields: [UnknownField], to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.member("uid", explanation.uid)
        writer.member("device", ifPresent: explanation.device)
        writer.member("route", explanation.route.rawValue)
        writer.member("verdict", explanation.verdict)
        writer.member("reason", explanation.reason)
        writer.key("steps")
        writer.beginArray()
        for step in explanation.steps {
            writer.beginObject()
            writer.member("step", Int64(step.number))
            writer.member("input", step.input)
            writer.member("outcome", step.outcome)
            writer.endObject()
        }
        writer.endArray()
        if let payload = explanation.payload {
            writer.key("payload")
            writer.raw(payload)
        }
        if !explanation.headers.isEmpty {
            writer.key("headers")
            writer.beginObject()
            for header in explanation.headers {
                writer.key(escaping: header.name)
                writer.string(header.value)
            }
            writer.endObject()
        }
        if !unknownFields.isEmpty {
            writer.key("unknown_fields")
            writer.beginArray()
            for field in unknownFields {
                writer.beginObject()
                writer.member("field", field.path)
                writer.member("near", ifPresent: field.near)
                writer.endObject()
            }
            writer.endArray()
        }
        writer.endObject()
    }
}
