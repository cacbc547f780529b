// SPDX-License-Identifier: Apache-2.0
import APNs
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
            why: snapshot.headline.map { "\($0)" } ?? "",
            place: "\(facts.host) <span class=\"wide-only\">·</span> <span>\(facts.version)</span>", isLive: true,
            links: [
                ("#health", "Health"), ("#flow", "Flow"), ("#outcomes", "Outcomes"), ("#stats", "Hours"),
                ("#ask", "Why no push?"),
                ("#lanes", "Latency"), ("#lag", "Lag"), ("#apns", "APNs"), ("#redis", "Redis"), ("#process", "Process"),
            ],
            body: [
                health, flow, outcomes, deadLetters, limits, TraceForm(apps: snapshot.apps.map(\.id)).section,
                statistics, lanes, lag, connections, credentials, brakes, redis, brokers, apps, process,
            ].joined()
        ).markup
    }

    // MARK: - Flow

    private var flow: Markup {
        let tiles = [
            tile(.read, "Events read", view.consumedRate), tile(.settled, "Events settled", view.settledRate),
            tile(.pushed, "Pushes accepted", pushRate), tile(.delivered, "By long connection", view.deliveryRate),
        ]
        let waits: [(Double?, Markup)] = [
            (view.pendingEvents, "events in work"), (view.pendingRecipients, "recipients in work"),
            (view.waitingForDevice, "waiting for their device's turn"), (view.parked, "parked"),
            (view.heldDevices.flatMap { $0 > 0 ? $0 : nil }, "devices that wait because APNs answered 429"),
        ]
        let items = waits.compactMap { count, words in
            count.map { count -> Markup in "<li><b>\(FigureText.number(count))</b> \(words)</li>" }
        }
        return PageFrame.section(
            "flow", "Flow", note: "the last \(FigureText.duration(FlowRing.seconds))", isWide: true,
            "<div class=\"tiles\">\(tiles.joined())</div><ul class=\"facts\">\(items.joined())\(troubles)</ul>")
    }

    private var pushRate: Double? {
        guard view.intervalSeconds != nil else { return nil }
        return view.attemptRates.first { $0.result == "accepted" }?.rate ?? 0
    }

    private func tile(_ flow: FlowRing.Flow, _ words: Markup, _ rate: Double?) -> Markup {
        let number: Markup = rate.map { "\(FigureText.number($0))" } ?? "–"
        return """
            <div class="tile"><h3>\(words)</h3><p class="figure" id="flow-\(flow.rawValue)">\(number)\
            <span class="unit"> a second</span></p>\(FlowGraph.markup(facts.flow.rates(flow), what: words))</div>

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
        guard view.intervalSeconds != nil else {
            return PageFrame.section("limits", "What limits it", "<p class=\"quiet\">measuring</p>")
        }
        // Before a bound is reached, the time of waiting for them is not counted.
        let down = snapshot.parts.filter { ($0.name == .kafka || $0.name == .redis) && $0.state == .down }
        var rows = down.map { part -> [Markup] in ["\(part.title)", "–", "it is down: see Health"] }
        let refused = snapshot.parts.filter { $0.problems.contains { $0.rule == .nothingAccepted } }
        rows += refused.map { ["\($0.title)", "–", "APNs does not accept its pushes: see Health"] }
        rows += view.limits.map { limit -> [Markup] in
            let words = Backpressure.Cause(rawValue: limit.cause)?.words ?? ""
            return ["\(limit.cause)", "\(FigureText.percent(limit.share))", "\(words)"]
        }
        let table = PageTable(
            caption: "Bounds that held work back, of all the time that the shards had",
            columns: [.init("bound"), .init("of the time", isNumber: true), .init("what it is")], rows: rows,
            nothing: "Nothing: work is done as fast as it comes.")
        return PageFrame.section("limits", "What limits it", table.markup)
    }

    private var lanes: Markup {
        let rows = PushLane.allCases.compactMap { lane -> [Markup]? in
            let cells = snapshot.shards.compactMap { $0.endToEnd.dropFirst(Int(lane.rawValue)).first }
            let count = cells.reduce(UInt64(0)) { $0 &+ $1.count }
            guard count > 0 else { return nil }
            func since(_ quantile: Double) -> Markup { Self.duration(Histogram.quantile(quantile, of: cells)) }
            let now = view.lanes.first { $0.lane == "\(lane.name)" }?.spread
            return [
                "\(String(describing: lane.name))", Self.duration(now?.p50), Self.duration(now?.p99), since(0.5),
                since(0.99), since(0.999), "\(FigureText.number(Double(count)))",
            ]
        }
        let table = PageTable(
            caption: "From the event's time in Kafka to APNs' acceptance",
            columns: [
                .init("lane"), .init("p50 now", isNumber: true), .init("p99 now", isNumber: true),
                .init("p50 since the start", isNumber: true), .init("p99 since the start", isNumber: true),
                .init("p99.9 since the start", isNumber: true), .init("pushes", isNumber: true),
            ], rows: rows, nothing: "no push yet")
        return PageFrame.section("lanes", "Latency", isWide: true, table.markup)
    }

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
