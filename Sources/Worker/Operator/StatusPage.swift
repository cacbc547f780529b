// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import Fleet
import Telemetry

/// The operator's page: health, flow, outcomes, limits, lag, and why a user got no push.
///
/// Its size is proportional to apps, partitions and nodes, and no table exceeds `PageTable.rowsMax`.
struct StatusPage {
    let facts: PageFacts
    var snapshot: ProcessSnapshot { facts.snapshot }
    var view: FleetView { facts.view }

    init(_ facts: PageFacts) { self.facts = facts }

    var markup: Markup {
        PageFrame(
            title: "\(snapshot.health.rawValue) – Carillon", state: state,
            place: "\(facts.host) <span class=\"wide-only\">·</span> <span>\(facts.version)</span>", isLive: true,
            links: [
                ("#health", "Health"), ("#ask", "Why no push?"), ("#flow", "Flow"), ("#outcomes", "Outcomes"),
                ("#stats", "Hours"), ("#lanes", "Latency"), ("#lag", "Lag"), ("#apns", "APNs"), ("#redis", "Redis"),
                ("#process", "Process"),
            ],
            body: [
                health, TraceForm(apps: snapshot.apps.map(\.id)).section, flow, outcomes, deadLetters, limits,
                statistics, lanes, lag, connections, credentials, brokers, redis, apps, process,
            ].joined()
        ).markup
    }

    // MARK: - Flow

    private var flow: Markup {
        // Few worlds have devices on long connections.
        let shown = FlowRing.Flow.allCases.filter { $0 != .delivered || facts.flow.hasEver($0) }
        let most = shown.map { facts.flow.rates($0).max() ?? 0 }.max() ?? 0
        let top = FlowGraph.top(over: most)
        let tiles = shown.map { tile($0, top) }
        let waits: [(Double?, Markup)] = [
            (view.pendingEvents, "event"), (view.pendingRecipients, "recipient"),
        ]
        let items = waits.compactMap { count, words in
            count.map { "<li><b>\(FigureText.number($0))</b> \(words)\($0 == 1 ? "" : "s") in work</li>" as Markup }
        }
        let scale: Markup =
            "<li class=\"quiet\">each graph: 0 to \(FigureText.number(top)) a second, the last \(FigureText.duration(FlowRing.seconds))</li>"
        let waiting = snapshot.waiting
        let pushed: Markup = pushRate.map { "\(FigureText.number($0)) pushes a second" } ?? "measuring"
        return PageFrame.section(
            "flow", "Flow", note: waiting.count == 0 ? "\(pushed), none waits" : pushed, isWide: true, folds: true,
            isWell: waiting.isPlanned && troubles.isEmpty,
            "<div class=\"tiles\">\(tiles.joined())</div>\(Self.sentence(waiting, nowMs: facts.atMs))"
                + "<ul class=\"facts\">\(items.joined())\(troubles)\(scale)</ul>")
    }

    /// How many pushes wait, since when, why and until when, as `/statusz` has it.
    static func sentence(_ waiting: WaitingPushes, nowMs: Int64) -> Markup {
        if waiting.count == 0 { return "" }
        let causes = waiting.sorted.map { cause, part -> Markup in
            let until: Markup = part.untilMs.map { " until \(InstantText.timeOrDate(ms: $0, nowMs: nowMs))" } ?? ""
            let count: Markup = waiting.sorted.count == 1 ? "" : "<b>\(part.count)</b> "
            return "\(count)\(cause.words)\(until)"
        }
        let oldest: Markup =
            waiting.oldestMs.map { "; the oldest event is \(AgeText.short(nowMs &- $0)) old" } ?? ""
        return """
            <p id="waiting"><b>\(waiting.count)</b> push\(waiting.count == 1 ? " waits" : "es wait"): \
            \(causes.joined(", "))\(oldest).</p>
            """
    }

    private var pushRate: Double? {
        guard view.intervalSeconds != nil else { return nil }
        return view.attemptRates.first { $0.result == "accepted" }?.rate ?? 0
    }

    private func tile(_ flow: FlowRing.Flow, _ top: Double) -> Markup {
        let (words, rate): (Markup, Double?) =
            switch flow {
            case .read: ("Events read", view.consumedRate)
            case .settled: ("Events settled", view.settledRate)
            case .pushed: ("Pushes accepted", pushRate)
            case .delivered: ("By long connection", view.deliveryRate)
            }
        let number: Markup = rate.map { "\(FigureText.number($0))" } ?? "–"
        return """
            <div class="tile"><h3>\(words)</h3><p class="figure" id="flow-\(flow.rawValue)">\(number)\
            <span class="unit"> a second</span></p>\(FlowGraph.markup(facts.flow.rates(flow), to: top, what: words))</div>

            """
    }

    /// Rates that are zero in normal operation.
    private var troubles: Markup {
        let others = view.attemptRates.filter { $0.result != "accepted" && $0.rate > 0 }
        var items = others.map { other -> Markup in
            "\(FigureText.number(other.rate)) tries a second \(FleetView.words(ofResult: other.result))"
        }
        if let late = view.ackTimeoutRate, late > 0 { items.append("\(FigureText.number(late)) a second without ack") }
        if let keys = view.unusualKeys, keys > 0 {
            items.append("\(FigureText.number(keys)) records with an unusual key since the start: they have no order")
        }
        return items.map { "<li>\(PageState.warning.badge($0))</li>" }.joined()
    }

    private var limits: Markup {
        // Before a bound is reached, the time of waiting for them is not counted.
        let down = snapshot.parts.filter { ($0.name == .kafka || $0.name == .redis) && $0.state == .down }
        var rows = down.map { part -> [Markup] in ["\(part.title)", "–", "it is down: see Health"] }
        let refused = snapshot.parts.filter { $0.problems.contains { $0.rule == .nothingAccepted } }
        rows += refused.map { ["\($0.title)", "–", "APNs does not accept its pushes: see Health"] }
        rows += view.limits.map { limit -> [Markup] in
            let words = Backpressure.Cause(rawValue: limit.cause)?.words ?? ""
            return ["\(limit.cause)", "\(FigureText.percent(limit.share))", "\(words)"]
        }
        let isKnown = view.intervalSeconds != nil
        let table = PageTable(
            caption: "Bounds that held work back, of all the time that the shards had",
            columns: [.init("bound"), .init("of the time", isNumber: true), .init("what it is")], rows: rows,
            nothing: "Work is done as fast as it comes.")
        return PageFrame.section(
            "limits", "What limits it", note: !isKnown ? "measuring" : rows.isEmpty ? "nothing" : "", folds: true,
            isWell: rows.isEmpty, isKnown ? table.markup : "")
    }

    private var lanes: Markup {
        let rows = PushLane.allCases.compactMap { lane -> [Markup]? in
            let cells = snapshot.shards.compactMap { $0.endToEnd.dropFirst(Int(lane.rawValue)).first }
            let count = cells.reduce(UInt64(0)) { $0 &+ $1.count }
            guard count > 0 else { return nil }
            let recent = facts.lanes.first { $0.lane == "\(lane.name)" }?.spread
            return [
                "\(String(describing: lane.name))", Self.duration(recent?.p50), Self.duration(recent?.p99),
                "\(FigureText.number(Double(count)))",
            ]
        }
        let table = PageTable(
            caption: "From the event's time in Kafka to APNs' acceptance, \(lastMinutes)",
            columns: [
                .init("lane"), .init("half within", isNumber: true), .init("99 % within", isNumber: true),
                .init("pushes since the start", isNumber: true),
            ], rows: rows, nothing: "no push yet")
        let note: Markup =
            facts.endToEnd.map { "99 % within \(FigureText.duration($0.p99))" }
            ?? "no push \(facts.recentSeconds == nil ? "yet" : lastMinutes)"
        return PageFrame.section("lanes", "Latency", note: note, isWide: true, folds: true, table.markup)
    }

    /// The time of what is called recent.
    var lastMinutes: Markup { "in the last \(FigureText.duration(facts.recentSeconds ?? 0))" }

    static func duration(_ seconds: Double?) -> Markup { seconds.map { "\(FigureText.duration($0))" } ?? "–" }
}

extension Backpressure.Cause {
    /// In words for people.
    var words: String {
        switch self {
        case .inflight: "a bound is reached; reading stops"
        case .limiter: "pushes wait for APNs' streams or its limiter; reading stops"
        case .redis: "commands wait for Redis; reading stops"
        case .window: "a partition has too much that is not settled; it is paused"
        case .lane: "members of large groups have their lane's share, while other messages come"
        case .breaker: "APNs reports that it is unavailable"
        case .connection: "no connection to APNs"
        case .credential: "APNs refuses the credential"
        }
    }
}

extension WaitingPushes.Cause {
    /// In words for people, behind `12 pushes wait:`.
    var words: Markup {
        switch self {
        case .unavailable: "until APNs is available"
        case .credential: "until APNs accepts the credential"
        case .retryAfter: "because APNs asked for it"
        case .behind: "behind an earlier push of their device"
        case .desktopFirst: "for the user's desktop"
        case .rate: "for limits.rate"
        case .share: "until half of their app's share is free"
        case .unclaimed: "for acks, while Redis refuses writes"
        case .scheduled: "for their own time"
        case .stream: "for a free stream to APNs"
        }
    }
}

extension WaitingPushes {
    /// Nothing but what the messages themselves ask for.
    var isPlanned: Bool { sorted.allSatisfy { $0.cause == .scheduled || $0.cause == .desktopFirst } }
}
