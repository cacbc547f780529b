// SPDX-License-Identifier: Apache-2.0
import Fleet
import Redis

/// Lag, and the worker's connections.
extension StatusPage {
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
        let isWell =
            isKnown && !open.contains(where: \.isPaused)
            && !snapshot.parts.contains { $0.problems.contains { $0.rule == .behind || $0.rule == .stuck } }
        return PageFrame.section(
            "lag", "Lag", note: isKnown ? "\(FigureText.counted(behind, "record")) behind" : "", isWide: true,
            folds: true, isWell: isWell, "<ul class=\"facts\">\(topics.joined())\(oldest)</ul>\(table.markup)")
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
            isWell: up == view.brokers.count, table.markup)
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
            isWell: troubled.isEmpty, table.markup)
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
            "credentials", "Credentials", note: troubled ? "" : "in use", folds: true, isWell: !troubled, table.markup)
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
            isWell: refusals.isEmpty && view.redisErrorRate ?? 0 == 0
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
            folds: true, isWell: (view.lostLogLines ?? 0) == 0,
            "<ul class=\"facts\">\(list)</ul>")
    }
}
