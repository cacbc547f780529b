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
            <p id="ask-hint" class="quiet">What did happen is kept for some days; without a message, only what would happen to \
            one now.</p>
            """)
    }
}

/// The answer: ids and codes, as in `carillon trace` and `carillon explain`; no texts, no tokens.
struct TracePage {
    let form: TraceForm
    /// Nil if nothing was asked.
    let answer: TraceAnswer?

    var markup: Markup {
        PageFrame(
            title: "Carillon: why no push?", links: [("./", "Overview"), ("#ask", "Ask"), ("#answer", "Answer")],
            body: form.section + result
        ).markup
    }

    private var result: Markup {
        switch answer {
        case nil: ""
        case .wrong(let why)?: section("<p role=\"alert\">\(PageState.bad.badge("\(why)"))</p>")
        case .away(let why)?:
            section("<p role=\"alert\">\(PageState.bad.badge("It cannot be answered now: \(why)"))</p>")
        case .found(let report, let now)?: section(happened(report) + wouldHappen(now))
        }
    }

    private func section(_ body: Markup) -> Markup {
        PageFrame.section("answer", "Answer", isLive: false, isWide: true, body)
    }

    // MARK: - What did happen

    private func happened(_ report: TraceReport?) -> Markup {
        switch report {
        case nil: ""
        case .absent(let why)?: "<h3>What happened</h3><p>\(why)</p>"
        case .records(let records)?:
            "<h3>What happened</h3>" + records.prefix(TraceDesk.shownMax).map(Self.happened).joined()
        }
    }

    private static func happened(_ record: TraceRecord) -> Markup {
        let age = record.atMs &- record.sentMs
        let sent: Markup =
            age < 0
            ? "sent \(FigureText.duration(Double(age.magnitude) / 1000)) later by its producer's clock"
            : "sent \(FigureText.duration(Double(age) / 1000)) before"
        let event: Markup = record.msgID == record.eventID ? "" : ", event \(record.eventID)"
        let resumed: Markup = record.isResumed ? ", resumed after an earlier try" : ""
        let steps = record.facts.steps.map { step -> [Markup] in
            [
                "\(step.step.rawValue) \(step.step.title)", outcome(step.outcome, step.passes), "\(step.input)",
            ]
        }
        return """
            <h4>\(record.kind.title) \(record.msgID)</h4>
            <p>\(time(record.atMs)), \(sent)\(event)\(resumed)</p>
            \(stepTable("Steps of the decision", steps))\(devices(record))
            """
    }

    private static func devices(_ record: TraceRecord) -> Markup {
        PageTable(
            caption: "Result by device",
            columns: [
                .init("device"), .init("outcome"), .init("reason"), .init("APNs' status", isNumber: true),
                .init("badge", isNumber: true), .init("attempts", isNumber: true), .init("took", isNumber: true),
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
        var text: Markup = "<h3>A plain message, one to one, if it came now</h3>"
        if explanations.isEmpty { return text + "<p>no user would get it</p>" }
        var told: [Explanation.Step] = []
        for explanation in explanations {
            let steps = explanation.steps.filter { !told.contains($0) }
            told += explanation.steps
            let way: Markup = explanation.route == .none ? "" : " by \(explanation.route.rawValue)"
            let rows = steps.map { step -> [Markup] in
                ["\(step.number) \(step.name)", Self.outcome(step.outcome, step.passes), "\(step.input)"]
            }
            let isPush = explanation.verdict == Verdict.accepted.rawValue
            text += """
                <h4>\(explanation.device ?? explanation.uid)\(way)</h4>
                <p>\(Self.verdict(explanation.verdict)) \(explanation.reason)\(isPush ? ", if APNs accepts it" : "")</p>
                \(Self.stepTable("Steps", rows))
                """
        }
        return text
    }

    // MARK: - Parts

    private static func stepTable(_ caption: Markup, _ rows: [[Markup]]) -> Markup {
        PageTable(
            caption: caption, columns: [.init("step"), .init("outcome"), .init("what it saw")], rows: rows,
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

    private static func time(_ ms: Int64) -> Markup {
        // Redis may contain any number, but a date has four-digit years.
        guard (-62_135_596_800_000...253_402_300_799_999).contains(ms) else { return "\(ms) ms" }
        return "<time>\(Timestamp.text(seconds: ms / 1000, nanos: max(0, ms % 1000) * 1_000_000))</time>"
    }
}
