// SPDX-License-Identifier: Apache-2.0
import Digits
import Fleet
import PushCore
import Telemetry

/// The form that asks why a user got no push. It works without a script: the form is sent to `/trace`.
struct TraceForm {
    /// From the configuration.
    var apps: [String]
    var question: TraceQuestion?

    private static let appsMax = 50

    var section: Markup {
        let chosen = question?.app
        let options = apps.prefix(Self.appsMax).map { app -> Markup in
            "<option\(app.isSame(as: chosen) ? " selected" : "")>\(app)</option>"
        }
        return PageFrame.section(
            "ask", "Why did this user get no push?", isLive: false, isWide: true,
            """
            <form action="trace" method="get" autocomplete="off">
            <p><label for="ask-app">App</label>
            <select id="ask-app" name="app">\(options.joined())</select></p>
            <p><label for="ask-user">User</label>
            <input id="ask-user" name="user" maxlength="128" required spellcheck="false" value="\(question?.uid ?? "")"></p>
            <p><label for="ask-msg">Message</label>
            <input id="ask-msg" name="msg" maxlength="64" spellcheck="false" value="\(question?.message ?? "")" \
            aria-describedby="ask-hint"></p>
            <p><button>Ask</button></p>
            </form>
            <p id="ask-hint" class="quiet">The message is its <code>msg_id</code>, of a Live Activity its <code>event_id</code>; kept \
            for <code>trace.ttl_h</code> hours (72 by default). Without it: what would happen to a plain message now.</p>
            """)
    }
}

/// The answer: the verdict in one sentence, then ids and codes, as in `carillon trace` and `carillon explain`; no texts,
/// no tokens.
struct TracePage {
    let form: TraceForm
    /// Nil if nothing was asked.
    let answer: TraceAnswer?
    /// Unix ms, for ages.
    var nowMs: Int64 = 0

    var markup: Markup {
        PageFrame(
            title: "Why no push? – Carillon", links: [("./", "Overview"), ("#ask", "Ask"), ("#answer", "Answer")],
            body: result + form.section
        ).markup
    }

    private var result: Markup {
        switch answer {
        case nil: ""
        case .wrong(let why)?: section("<p role=\"alert\">\(PageState.bad.badge("\(why)"))</p>")
        case .away(let why)?:
            section("<p role=\"alert\">\(PageState.bad.badge("It cannot be answered now: \(why)"))</p>")
        case .found(let report, let now)?:
            section(happened(report))
                + PageFrame.section(
                    "now", "A plain message of a new conversation, if it came now", isLive: false, isWide: true,
                    wouldHappen(now))
        }
    }

    private func section(_ body: Markup) -> Markup {
        guard !body.isEmpty else { return "" }
        let message = form.question?.message.map { message -> Markup in "\(message) for " } ?? ""
        let whom = form.question.map { question -> Markup in "\(message)\(question.uid) of app \(question.app)" } ?? ""
        return PageFrame.section("answer", "Answer", note: whom, isLive: false, isWide: true, body)
    }

    // MARK: - What did happen

    private func happened(_ report: TraceReport?) -> Markup {
        switch report {
        case nil: ""
        case .absent(let why)?: "<p class=\"verdict\">\(why)</p>"
        case .records(let records, _)?: records.prefix(TraceDesk.shownMax).map(happened).joined()
        }
    }

    private func happened(_ record: TraceRecord) -> Markup {
        let sentences = TraceSentence.all(record).prefix(PageTable.rowsMax).map { tone, text -> Markup in
            let page: PageState =
                switch tone {
                case .good: .good
                case .waits: .warning
                case .bad: .bad
                case .past: .quiet
                }
            return """
                <p class="verdict \(page.style)"><span aria-hidden="true">\(page.sign)</span> \(text)</p>
                """
        }
        let event: Markup = record.msgID == record.eventID ? "" : ", event \(record.eventID)"
        let resumed: Markup = record.isResumed ? ", resumed after an earlier try" : ""
        let steps = record.facts.steps.map { step -> [Markup] in
            ["\(step.step.title)", Self.outcome(step.outcome, step.passes), "\(step.input)"]
        }
        return """
            <div class="answer">\(sentences.joined())
            <p class="quiet">\(record.title)\(event), first outcome \(when(record.atMs))\(Self.sent(record))\(resumed)</p>
            <details><summary>Steps of the decision</summary>\(Self.stepTable("Each step with its outcome and input", steps))</details>
            <details><summary>Result by device, with APNs' answers</summary>\(Self.devices(record))</details></div>

            """
    }

    private static func sent(_ record: TraceRecord) -> Markup {
        let age = record.atMs.subtractingReportingOverflow(record.sentMs)
        if age.overflow { return "" }
        return age.partialValue < 0
            ? ", \(FigureText.duration(Double(age.partialValue.magnitude) / 1000)) before it was sent by its producer's clock"
            : ", \(FigureText.duration(Double(age.partialValue) / 1000)) after it was sent"
    }

    private static func devices(_ record: TraceRecord) -> Markup {
        PageTable(
            caption: "One line for each device",
            columns: [
                .init("device"), .init("outcome"), .init("reason"), .init("APNs' status", isNumber: true),
                .init("badge", isNumber: true), .init("attempts", isNumber: true),
                .init("since Kafka's time", isNumber: true),
                .init("apns_id"),
            ],
            rows: record.devices.map { device in
                [
                    "\(device.device ?? "the user")", verdict(device.verdict.rawValue), "\(device.reason)",
                    device.status.map { "\($0)" } ?? "–", device.badge.map { "\($0)" } ?? "–", "\(device.attempts)",
                    device.attempts > 0 ? "\(FigureText.duration(Double(device.latencyMs) / 1000))" : "–",
                    device.attempts > 0 ? device.pushID.map { "\($0.description)" } ?? "–" : "–",
                ]
            }
        ).markup
    }

    // MARK: - What would happen

    private func wouldHappen(_ explanations: [Explanation]) -> Markup {
        if explanations.isEmpty { return "<p class=\"verdict\">No user would get it.</p>" }
        var (text, folded): (Markup, Markup) = ("", "")
        var told: [Explanation.Step] = []
        for explanation in explanations {
            let steps = explanation.steps.filter { !told.contains($0) }
            told += explanation.steps
            let rows = steps.map { step -> [Markup] in
                ["\(step.name)", Self.outcome(step.outcome, step.passes), "\(step.input)"]
            }
            let whom: Markup = "\(explanation.device ?? explanation.uid)"
            text += Self.sentence(explanation)
            folded += "<h3>\(whom): \(explanation.verdict) \(explanation.reason)</h3>\(Self.stepTable("Steps", rows))"
        }
        return "\(text)<details><summary>Each step, with its present input</summary>\(folded)</details>"
    }

    private static func sentence(_ explanation: Explanation) -> Markup {
        let whom: Markup = explanation.device.map { device -> Markup in " to \(device)" } ?? ""
        let (page, words): (PageState, Markup) =
            switch Verdict(rawValue: explanation.verdict) {
            case .accepted?: (.good, "It would be pushed\(whom), if APNs accepts it.")
            case .online?: (.good, "It would be sent\(whom) by the long connection.")
            default:
                (
                    .warning,
                    "It would not be pushed\(whom): \(Reason(rawValue: explanation.reason)?.words ?? explanation.reason)."
                )
            }
        return "<p class=\"verdict \(page.style)\"><span aria-hidden=\"true\">\(page.sign)</span> \(words)</p>"
    }

    // MARK: - Parts

    private static func stepTable(_ caption: Markup, _ rows: [[Markup]]) -> Markup {
        PageTable(
            caption: caption, columns: [.init("step"), .init("outcome"), .init("input")], rows: rows,
            nothing: "no step was made"
        ).markup
    }

    private static func outcome(_ words: String, _ passes: Bool) -> Markup {
        (passes ? PageState.good : .bad).badge("\(words)")
    }

    private static func verdict(_ verdict: String) -> Markup {
        let state: PageState =
            switch Verdict(rawValue: verdict) {
            case .accepted?, .online?: .good
            case .rejected?: .bad
            case .expired?, .suppressed?, .parked?, nil: .warning
            }
        return state.badge("\(verdict)")
    }

    /// The time of the day with the age; older than a day, the date.
    private func when(_ ms: Int64) -> Markup {
        // Redis may contain any number, but a date has four-digit years.
        guard (0...253_402_300_799_999).contains(ms) else { return "\(ms) ms" }
        let whole = Timestamp.text(seconds: ms / 1000)
        let age = nowMs - ms
        guard (0..<86_400_000).contains(age) else { return "<time datetime=\"\(whole)\">\(whole)</time>" }
        return """
            <time datetime="\(whole)" title="\(whole)">\(FigureText.duration(Double(age) / 1000)) ago</time>
            """
    }
}
