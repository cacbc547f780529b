// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import Fleet
import PushCore
import Redis
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
                health, fleet, TraceForm(apps: snapshot.apps.map(\.id)).section, flow, outcomes, deadLetters, limits,
                statistics, lanes, lag, connections, credentials, brokers, redis, apps, process,
            ].joined()
        ).markup
    }

    // MARK: - Workers

    /// The workers of the group; without room where this is the only one.
    var fleet: Markup {
        let workers = facts.fleet.workers
        guard workers.count > 1 else { return "<div id=\"fleet\" data-live hidden></div>" }
        let well = workers.filter { $0.silentSeconds == nil && $0.note.health == ProcessSnapshot.Health.ok.rawValue }
        let table = PageTable(
            caption: "The workers of the group, each as of its last note",
            columns: [
                .init("worker"), .init("health"), .init("pushes a second", isNumber: true),
                .init("records behind", isNumber: true), .init("oldest unsettled", isNumber: true), .init("version"),
            ], rows: workers.map(row))
        return PageFrame.section(
            "fleet", "Workers", note: "\(well.count) of \(workers.count) are ok", isWide: true, folds: true,
            isHealthy: well.count == workers.count, table.markup)
    }

    private func row(_ worker: FleetWorkers.Worker) -> [Markup] {
        func number(_ value: Double?) -> Markup { value.map { "\(FigureText.number($0))" } ?? "–" }
        let (note, name) = (worker.note, facts.fleet.name(of: worker))
        let link: Markup = facts.fleet.link(to: worker).map { "<a href=\"\($0)\">\(name)</a>" } ?? "\(name)"
        let state: Markup =
            if let seconds = worker.silentSeconds {
                PageState.bad.badge("no sign for \(FigureText.duration(seconds))")
            } else {
                (ProcessSnapshot.Health(rawValue: note.health)?.page ?? .quiet).badge("\(note.health)")
            }
        return [
            worker.isThis ? "\(name) <span class=\"quiet\">this one</span>" : link, state, number(note.pushRate),
            number(note.lagRecords), Self.duration(note.oldestSeconds), "\(note.version)",
        ]
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
            isHealthy: waiting.isPlanned && troubles.isEmpty,
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
            isHealthy: rows.isEmpty, isKnown ? table.markup : "")
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

    /// The words for the period of recent figures.
    private var lastMinutes: Markup { "in the last \(FigureText.duration(facts.recentSeconds ?? 0))" }

    static func duration(_ seconds: Double?) -> Markup { seconds.map { "\(FigureText.duration($0))" } ?? "–" }

    // MARK: Health
    // Health: one line if all is well, else a card for each problem with its cause and a link to its runbook.

    /// A screen reader announces the word when it changes, and nothing else on the page.
    var state: Markup {
        let health = snapshot.health
        return "<p id=\"state\" role=\"status\" data-live>\(health.page.pill("\(health.rawValue)"))</p>"
    }

    private static let cardsMax = 12

    var health: Markup {
        let problems = snapshot.parts.flatMap { part in part.problems.map { (part: part, problem: $0) } }
        let cards = (0...2).flatMap { rank in
            problems.filter { $0.problem.rank == rank }.map { Self.card($0.part, $0.problem, nowMs: snapshot.atMs) }
        }
        let more: Markup =
            cards.count > Self.cardsMax ? "<p class=\"quiet\">and \(cards.count - Self.cardsMax) more</p>" : ""
        let all: Markup =
            cards.isEmpty ? "" : "<div class=\"cards\">\(cards.prefix(Self.cardsMax).joined())</div>\(more)"
        return PageFrame.section(
            "health", "Health", note: headline, isWide: true, "\(all)\(problems.isEmpty ? "" : wellParts)")
    }

    private var headline: Markup {
        switch snapshot.health {
        case .ok: "All is well."
        case .degraded: "It runs, and needs attention."
        case .down: "It does not work, or only in part."
        case .starting: "It starts: nothing is known yet."
        case .draining: "It ends: it reads nothing more, and finishes its work."
        }
    }

    /// One that has ended has no colour.
    private static func card(_ part: ProcessPart, _ problem: ProcessPart.Problem, nowMs: Int64) -> Markup {
        let page = problem.endedMs == nil ? problem.state.page : .quiet
        let link: Markup =
            problem.alert.map { alert in
                """
                <p><a href="runbooks#\(alert.lowercased())">What to do\
                <span class="hidden"> about: \(words(part)) \(problem.state.rawValue)</span></a></p>
                """
            } ?? ""
        return """
            <div class="card \(page.style)"><h3><span aria-hidden="true">\(page.sign)</span> \(words(part)): \
            \(problem.state.rawValue) <span class="quiet">\(problem.course(nowMs: nowMs))</span></h3>\
            <p>\(problem.text)</p>\(link)</div>

            """
    }

    /// Parts without a problem, in one line.
    private var wellParts: Markup {
        let well = snapshot.parts.filter { $0.problems.isEmpty }
        let items = well.prefix(Self.cardsMax).map { part -> Markup in
            "<li>\(PageState.good.badge(Self.words(part)))</li>"
        }
        let more: Markup =
            well.count > items.count ? "<li class=\"quiet\">and \(well.count - items.count) more</li>" : ""
        return items.isEmpty ? "" : "<ul class=\"facts\">\(items.joined())\(more)</ul>"
    }

    private static func words(_ part: ProcessPart) -> Markup {
        switch part.name {
        case .kafka: "Kafka"
        case .redis: "Redis"
        case .configuration: "Configuration"
        case .clock: "Clock"
        case .events: "Events"
        case .system: "Process"
        case .loop: "Shards"
        case .app(let id, let environment): "\(id) \(environment)"
        }
    }

    // MARK: Outcomes
    // Outcomes of the last minutes, and dead letters.

    var outcomes: Markup {
        func count(_ verdicts: [Verdict]) -> Double {
            let names = verdicts.map(\.rawValue)
            let rate = facts.verdicts.reduce(0) { $0 + (names.contains($1.verdict) ? $1.rate : 0) }
            return (rate * (facts.recentSeconds ?? 0)).rounded()
        }
        let (all, failed, parked) = (count(Verdict.allCases), count([.rejected, .expired]), count([.parked]))
        var note: Markup =
            all > 0
            ? "\(FigureText.number(all)) in \(FigureText.duration(facts.recentSeconds ?? 0))" : "none yet"
        if failed > 0 { note += ", \(FigureText.number(failed)) failed" }
        if parked > 0 { note += ", \(FigureText.number(parked)) parked" }
        return PageFrame.section(
            "outcomes", "Outcomes", note: note, isWide: true, folds: true, isHealthy: (failed + parked) * 20 <= all,
            "\(shares)\(reasons)")
    }

    /// Each verdict's share, as a bar and in words.
    private var shares: Markup {
        let all = facts.verdicts.reduce(0) { $0 + $1.rate }
        guard all > 0, let seconds = facts.recentSeconds else { return "" }
        var (bar, legend): (Markup, Markup) = ("", "")
        var start = 0.0
        for verdict in Verdict.allCases {
            guard let rate = facts.verdicts.first(where: { $0.verdict == verdict.rawValue })?.rate, rate > 0 else {
                continue
            }
            let width = rate / all * 1000
            bar += SharesBar.part(verdict, from: start, width: width)
            start += width
            legend += """
                <li><span class="key \(verdict.rawValue)" aria-hidden="true"></span>\(verdict.rawValue) \
                <b>\(FigureText.number((rate * seconds).rounded()))</b> \
                <span class="quiet">\(FigureText.percent(rate / all))</span></li>
                """
        }
        return """
            <svg class="shares" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">\(bar)</svg>
            <ul class="facts">\(legend)</ul>

            """
    }

    /// Outcomes other than pushes accepted by APNs or deliveries by long connection.
    private var reasons: Markup {
        let failed = facts.recent.filter {
            !["accepted", "online", FleetView.Outcome.deadLetter].contains($0.verdict)
        }
        let isRecent = failed.contains { $0.rate != nil }
        let table = PageTable(
            caption: isRecent
                ? "Outcomes without a push or delivery"
                : "Outcomes without a push or delivery since the start; none lately",
            columns: [
                .init("reason"), .init("outcome"), .init("app"), .init("a minute", isNumber: true),
                .init("since the start", isNumber: true),
            ],
            rows: failed.map { outcome in
                let state: PageState =
                    outcome.verdict == "rejected" ? .bad : outcome.verdict == "expired" ? .warning : .quiet
                return [
                    "\(outcome.reason)", state.badge("\(outcome.verdict)"),
                    outcome.app.isEmpty ? "–" : "\(outcome.app)",
                    outcome.rate.map { "\(FigureText.number($0 * 60))" } ?? "–", "\(FigureText.number(outcome.total))",
                ]
            }, nothing: "Everything reached its device.")
        return table.markup
    }

    var deadLetters: Markup {
        let letters = facts.recent.filter { $0.verdict == FleetView.Outcome.deadLetter }
        let table = PageTable(
            caption: "Records that cannot be read, by the rule that they broke",
            columns: [.init("rule"), .init("a minute", isNumber: true), .init("since the start", isNumber: true)],
            rows: letters.map { letter in
                [
                    PageState.bad.badge("\(letter.reason)"),
                    letter.rate.map { "\(FigureText.number($0 * 60))" } ?? "–", "\(FigureText.number(letter.total))",
                ]
            }, nothing: "Every record could be read.")
        let hint: Markup = letters.isEmpty ? "" : "<p class=\"quiet\"><code>carillon dlq list</code> shows each.</p>"
        let total = letters.reduce(0) { $0 + $1.total }
        return PageFrame.section(
            "dead-letters", "Dead letters", note: total > 0 ? "\(FigureText.number(total)) since the start" : "none",
            folds: true, isHealthy: letters.allSatisfy { $0.rate == nil }, "\(table.markup)\(hint)")
    }

    // MARK: Parts
    // Lag, and the worker's connections.

    // MARK: - Kafka

    var lag: Markup {
        // Without a partition the end offsets are unknown, so 0 would be wrong.
        let isKnown = view.assigned != 0
        let topics =
            !isKnown
            ? ["<li>not known: no partition is assigned</li>"]
            : view.lags.map { lag -> Markup in
                let time: Markup = lag.seconds.map { ", \(FigureText.duration($0)) behind" } ?? ""
                return """
                    <li>\(lag.topic ?? "all topics"): \(lag.records.map { FigureText.number($0) } ?? "–") records\(time)</li>
                    """
            }
        let oldest: Markup =
            view.oldestSeconds.map { "<li>oldest unsettled record: \(FigureText.duration($0))</li>" } ?? ""
        let slowest = ShardStatus.Partition.slowest(snapshot.shards.flatMap(\.partitions))
        let open = slowest.filter { $0.unsettled > 0 || $0.lag ?? 0 > 0 || $0.isPaused }
        let all = snapshot.shards.reduce(0) { $0 + $1.readPartitions }
        let table = PageTable(
            caption: "Partitions with open work, the slowest first",
            columns: [
                .init("partition"), .init("records behind", isNumber: true), .init("oldest unsettled", isNumber: true),
                .init("in work", isNumber: true), .init("settled to", isNumber: true), .init("read to", isNumber: true),
                .init("state"),
            ],
            rows: open.map(Self.row), hidden: open.count < slowest.count ? 0 : all - open.count,
            nothing: all == 0 ? "no partition is assigned" : "no partition has open work")
        let behind = view.lags.compactMap(\.records).reduce(0, +)
        let isHealthy =
            isKnown && !open.contains(where: \.isPaused)
            && !snapshot.parts.contains { $0.problems.contains { $0.rule == .behind || $0.rule == .stuck } }
        return PageFrame.section(
            "lag", "Lag", note: isKnown ? "\(FigureText.counted(behind, "record")) behind" : "", isWide: true,
            folds: true, isHealthy: isHealthy, "<ul class=\"facts\">\(topics.joined())\(oldest)</ul>\(table.markup)")
    }

    private static func row(_ partition: ShardStatus.Partition) -> [Markup] {
        [
            "\(partition.topic) \(partition.partition)", partition.lag.map { "\($0)" } ?? "–",
            duration(partition.oldestSeconds), "\(partition.unsettled)", partition.settledTo.map { "\($0)" } ?? "–",
            partition.readTo.map { "\($0)" } ?? "–",
            partition.isPaused ? PageState.warning.badge("paused") : PageState.quiet.badge("reading"),
        ]
    }

    var brokers: Markup {
        let table = PageTable(
            caption: "Kafka's brokers", columns: [.init("broker"), .init("state")],
            rows: view.brokers.map {
                ["\($0.name)", $0.isUp ? PageState.good.badge("answers") : PageState.bad.badge("away")]
            },
            nothing: "none is known yet")
        let up = view.brokers.filter(\.isUp).count
        return PageFrame.section(
            "kafka", "Kafka", note: "\(up) of \(view.brokers.count) brokers answer", folds: true,
            isHealthy: up == view.brokers.count, table.markup)
    }

    // MARK: - APNs

    var connections: Markup {
        // Entries with problems first, because the list may be cut. An unused environment has none.
        let troubled = view.clients.filter(\.isTroubled)
        let clients = troubled + view.clients.filter { !$0.isTroubled && $0.limit + $0.connections + $0.queued > 0 }
        let table = PageTable(
            caption: "Connections to APNs, by app, environment and credential",
            columns: [
                .init("app"), .init("environment"), .init("credential"), .init("connections", isNumber: true),
                .init("pushes in flight", isNumber: true), .init("at most", isNumber: true),
                .init("queued", isNumber: true),
                .init("breaker"),
            ], rows: clients.map(Self.row))
        let count = clients.reduce(0) { $0 + $1.connections }
        return PageFrame.section(
            "apns", "APNs", note: "\(FigureText.counted(count, "connection"))", isWide: true, folds: true,
            isHealthy: troubled.isEmpty, table.markup)
    }

    private static func row(_ client: FleetView.Client) -> [Markup] {
        let breaker =
            client.breaker > 1
            ? PageState.bad.badge("open: pushes wait")
            : client.breaker > 0 ? PageState.warning.badge("probes with one push") : PageState.good.badge("closed")
        return [
            "\(client.app)", "\(client.environment ?? "–")", "\(client.credential ?? "–")",
            "\(FigureText.number(client.connections))", "\(FigureText.number(client.inFlight))",
            "\(FigureText.number(client.limit))", "\(FigureText.number(client.queued))", breaker,
        ]
    }

    /// Each credential once, however many environments it serves.
    var credentials: Markup {
        var rows: [[Markup]] = []
        var known: Set<[String]> = []
        for client in view.clients where known.insert([client.app, client.credential ?? ""]).inserted {
            let same = view.clients.filter { $0.app == client.app && $0.credential == client.credential }
            let state =
                same.contains(where: \.isPaused)
                ? PageState.bad.badge("APNs refuses it")
                : client.isReplacementRefused
                    ? PageState.warning.badge("a changed one is not in use") : PageState.good.badge("in use")
            rows.append(["\(client.app) \(client.credential ?? "")", Self.end(client.daysLeft), state])
        }
        let table = PageTable(
            caption: "Credentials and how long they are good",
            columns: [.init("credential"), .init("ends"), .init("state")],
            rows: rows)
        let troubled = view.clients.contains { $0.isPaused || $0.isReplacementRefused || $0.daysLeft ?? .infinity < 14 }
        return PageFrame.section(
            "credentials", "Credentials", note: troubled ? "" : "in use", folds: true, isHealthy: !troubled,
            table.markup)
    }

    private static func end(_ days: Double?) -> Markup {
        guard let days else { return "never: a key does not expire" }
        if days < 0 { return PageState.bad.badge("it has ended") }
        let words: Markup = "in \(FigureText.number(days.rounded(.down))) days"
        return days < 14 ? PageState.warning.badge(words) : words
    }

    // MARK: - Redis

    var redis: Markup {
        var facts: [Markup] = []
        let spread = view.redisLatency
        if let spread { facts.append("half of the replies within \(FigureText.duration(spread.p50))") }
        if let errors = view.redisErrorRate, errors > 0 {
            facts.append(PageState.warning.badge("\(FigureText.number(errors)) errors a second"))
        }
        if let keys = view.redisKeys { facts.append("\(FigureText.number(keys)) keys") }
        let refusals = Set(snapshot.shards.compactMap(\.redisRefusal)).sorted()
        facts += refusals.prefix(4).map { PageState.bad.badge("refuses writes: \($0)") }
        return PageFrame.section(
            "redis", "Redis", note: spread.map { "99 % of the replies within \(FigureText.duration($0.p99))" } ?? "",
            isWide: true, folds: true,
            isHealthy: refusals.isEmpty && view.redisErrorRate ?? 0 == 0
                && snapshot.shards.allSatisfy { $0.redisPlaces.allSatisfy(\.isReady) },
            "<ul class=\"facts\">\(facts.map { "<li>\($0)</li>" as Markup }.joined())</ul>\(nodes.markup)")
    }

    /// Each server once. It is down if one shard cannot reach it, even if another can.
    private var nodes: PageTable {
        var byPlace: [String: (ready: Int, all: Int, waiting: Int, why: String?)] = [:]
        for node in snapshot.shards.flatMap(\.redisPlaces) {
            let seen = byPlace[node.place] ?? (0, 0, 0, nil)
            byPlace[node.place] = (
                seen.ready + (node.isReady ? 1 : 0), seen.all + 1, seen.waiting + node.waiting, seen.why ?? node.why
            )
        }
        let sorted = byPlace.sorted { one, other in
            let (isAway, isOtherAway) = (one.value.ready < one.value.all, other.value.ready < other.value.all)
            return isAway != isOtherAway ? isAway : one.key < other.key
        }
        // For a single server the facts above show the errors, and it has no redirects.
        let rates = Dictionary(view.redisNodes.map { ($0.place, $0) }, uniquingKeysWith: { $1 })
        let isCluster = snapshot.shards.contains { $0.redisPlaces.contains { $0.node != nil } }
        let hasWhy = sorted.contains { $0.value.why != nil }
        let rateColumns: [PageTable.Column] = [
            .init("errors/s", isNumber: true), .init("redirected or deferred/s", isNumber: true),
        ]
        func rate(_ value: Double?) -> Markup { value.map { "\(FigureText.number($0))" } ?? "–" }
        return PageTable(
            caption: "Redis' servers",
            columns: [.init("server"), .init("state"), .init("commands that wait", isNumber: true)]
                + (isCluster ? rateColumns : []) + (hasWhy ? [.init("why")] : []),
            rows: sorted.map { place, node in
                let state =
                    node.ready == node.all
                    ? PageState.good.badge("connected")
                    : PageState.bad.badge("\(node.ready) of \(node.all) shards are connected")
                let cells: [Markup] = ["\(place)", state, "\(node.waiting)"]
                let counted = isCluster ? [rate(rates[place]?.errorRate), rate(rates[place]?.redirectRate)] : []
                return cells + counted + (hasWhy ? ["\(node.why ?? "")"] : [])
            }, nothing: "none is known yet")
    }

    // MARK: - The rest

    var apps: Markup {
        let items = snapshot.apps.prefix(PageTable.rowsMax).map { app -> Markup in
            "<li>\(app.id): \(app.accepted) pushes accepted, \(app.opened) opened</li>"
        }
        let more = snapshot.apps.count - items.count
        let accepted = snapshot.apps.reduce(0) { $0 &+ $1.accepted }
        return PageFrame.section(
            "apps", "Apps", note: "\(FigureText.number(Double(accepted))) pushes since the start", folds: true,
            "<ul>\(items.joined())\(more > 0 ? "<li>and \(more) more</li>" : "")</ul>")
    }

    var process: Markup {
        var items: [Markup] = ["version <b>\(facts.version)</b>", "librdkafka <b>\(facts.library)</b>"]
        items.append("shards <b>\(snapshot.shards.count)</b>")
        if let cpu = view.cpu { items.append("CPU <b>\(FigureText.percent(cpu))</b> of one processor") }
        if let bytes = view.memoryBytes {
            items.append("memory <b>\(FigureText.number((bytes / 1_048_576).rounded())) MiB</b>")
        }
        if let files = view.openFiles { items.append("open descriptors <b>\(FigureText.number(files))</b>") }
        if let late = view.loopLagSeconds { items.append("event loops late by <b>\(Self.duration(late))</b>") }
        if let lost = view.lostLogLines, lost > 0 {
            items.append(PageState.warning.badge("log lines lost since the start: \(FigureText.number(lost))"))
        }
        let list = items.map { "<li>\($0)</li>" as Markup }.joined()
        return PageFrame.section(
            "process", "Process", note: facts.uptimeSeconds.map { "runs for \(FigureText.duration($0))" } ?? "",
            folds: true, isHealthy: (view.lostLogLines ?? 0) == 0,
            "<ul class=\"facts\">\(list)</ul>")
    }

    // MARK: Statistics
    // The statistics on the page: outcomes by hour and by day, of all apps and workers.

    private static let (hourMs, dayMs): (Int64, Int64) = (3_600_000, 86_400_000)
    private static let hoursShown: Int64 = 48
    static let daysShown: Int64 = 31

    var statistics: Markup {
        let accepted = FigureText.number(Double(today.accepted))
        let note: Markup = facts.statistics == nil ? "" : "\(accepted) in 24 h"
        return PageFrame.section("stats", "Hour by hour", note: note, isWide: true, folds: true, charts)
    }

    private var hour: Int64 { facts.atMs / Self.hourMs * Self.hourMs }

    /// The last 24 hours.
    private var today: StatisticsNumbers {
        facts.statistics?.sum(from: hour - 23 * Self.hourMs, to: hour + Self.hourMs) ?? StatisticsNumbers()
    }

    private var charts: Markup {
        guard let numbers = facts.statistics else {
            return "<p class=\"quiet\">The worker is reading them from Redis.</p>"
        }
        let old: Markup =
            numbers.fault.map { "<p>\(PageState.warning.badge("\($0): these numbers are old"))</p>" } ?? ""
        let day = facts.atMs / Self.dayMs * Self.dayMs
        let hours = (0..<Self.hoursShown).reversed().map { numbers.hours[hour - $0 * Self.hourMs] }
        let days = (0..<Self.daysShown).reversed().map { back in
            numbers.sum(from: day - back * Self.dayMs, to: day - (back - 1) * Self.dayMs)
        }
        let all = days.reduce(StatisticsNumbers(), +)
        return """
            \(old)<div class="tiles two">\
            \(tile("By hour", today.accepted, "accepted in 24 h", hours, "an hour", ["−48 h", "−36 h", "−24 h", "−12 h", "now"]))\
            \(tile("By day", all.accepted, "accepted in 31 days", days, "a day", ["−30 d", "−20 d", "−10 d", "today"]))\
            </div><ul class="facts"><li class="quiet">all workers, UTC, in 24 h:</li>\(Self.legend(today))\(Self.rates(today))</ul>\
            <p class="quiet"><code>carillon stats</code> shows the numbers by app, task, template and reason.</p>
            """
    }

    private func tile(
        _ title: Markup, _ count: Int64, _ unit: Markup, _ bars: [StatisticsNumbers?], _ each: Markup, _ axis: [Markup]
    ) -> Markup {
        """
        <div class="tile"><h3>\(title)</h3><p class="figure">\(FigureText.number(Double(count)))\
        <span class="unit"> \(unit)</span></p>\
        \(StatisticsBars.markup(bars.map { $0 ?? StatisticsNumbers() }, title, each))\
        <p class="axis" aria-hidden="true">\(axis.map { "<span>\($0)</span>" as Markup }.joined())</p></div>

        """
    }

    /// The outcomes of the last 24 hours.
    private static func legend(_ numbers: StatisticsNumbers) -> Markup {
        StatisticsBars.parts.filter { numbers[keyPath: $0.number] > 0 }.map { verdict, number -> Markup in
            """
            <li><span class="key \(verdict.rawValue)" aria-hidden="true"></span>\(verdict.rawValue) \
            <b>\(FigureText.number(Double(numbers[keyPath: number])))</b></li>
            """
        }.joined()
    }

    private static func rates(_ numbers: StatisticsNumbers) -> Markup {
        let rates: [(Markup, Double)] = [
            ("arrived", numbers.arrivalRate ?? 0), ("opened", numbers.openRate ?? 0),
        ]
        return rates.filter { $0.1 > 0 }.map { name, rate -> Markup in
            "<li>\(name) <b>\(FigureText.percent(rate))</b> <span class=\"quiet\">of alerts</span></li>"
        }.joined()
    }
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
        case .background: "for the next hour of background pushes"
        case .stream: "for a free stream to APNs"
        }
    }
}

extension WaitingPushes {
    /// Whether all these waits are ones that the messages or the settings ask for.
    var isPlanned: Bool { sorted.allSatisfy { [.scheduled, .desktopFirst, .background].contains($0.cause) } }
}

/// A bar of shares, as inline SVG.
enum SharesBar {
    /// - Parameter width: of 1000.
    static func part(_ verdict: Verdict, from start: Double, width: Double) -> Markup {
        let corners = [(x: start, y: 0.0), (x: start + width, y: 0), (x: start + width, y: 10), (x: start, y: 10)]
        return "<polygon class=\"\(verdict.rawValue)\" points=\"\(Markup(points: corners))\"/>"
    }
}

/// Outcomes as stacked bars, oldest first, as inline SVG.
enum StatisticsBars {
    static let parts: [(verdict: Verdict, number: any KeyPath<StatisticsNumbers, Int64> & Sendable)] = [
        (.accepted, \.accepted), (.online, \.online), (.suppressed, \.suppressed), (.expired, \.expired),
        (.rejected, \.rejected),
    ]
    private static let (width, height) = (480.0, 40.0)

    /// - Parameters:
    ///   - title: for screen readers, as `each`: the time of a bar.
    static func markup(_ bars: [StatisticsNumbers], _ title: Markup, _ each: Markup) -> Markup {
        let sums = bars.map { bar in parts.reduce(0) { $0 + max(0, Double(bar[keyPath: $1.number])) } }
        let most = sums.max() ?? 0
        let step = width / Double(max(1, bars.count))
        var shapes: Markup = ""
        for (index, bar) in bars.enumerated() where most > 0 {
            let (left, right) = (step * Double(index) + step * 0.1, step * Double(index + 1) - step * 0.1)
            var base = height
            for part in parts where bar[keyPath: part.number] > 0 {
                let top = base - Double(bar[keyPath: part.number]) / most * (height - 1)
                let corners = [(x: left, y: base), (x: left, y: top), (x: right, y: top), (x: right, y: base)]
                shapes += "<polygon class=\"\(part.verdict.rawValue)\" points=\"\(Markup(points: corners))\"/>"
                base = top
            }
        }
        let words: Markup = "peak \(FigureText.number(most)) \(each)"
        return """
            <p class="most" aria-hidden="true">\(words)</p>\
            <svg class="bars" role="img" viewBox="0 0 480 40" preserveAspectRatio="none" \
            aria-label="\(title): outcomes, \(words)">\(shapes)</svg>
            """
    }
}
