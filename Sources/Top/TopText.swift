// SPDX-License-Identifier: Apache-2.0
import Console
import Fleet

/// The view for people.
enum TopText {
    private typealias Item = TopLayout.Item
    private typealias Row = TopLayout.Row

    /// Maximum entries of each list: clients, workers, reasons.
    private static let shownMax = 12

    static func lines(_ view: FleetView, width: Int) -> [TerminalText] {
        TopLayout.lines(rows(view), width: width)
    }

    private static func rows(_ view: FleetView) -> [TopLayout.Row] {
        var rows = workers(view) + [Row(label: "limited by", items: limits(view))]
        guard view.workers.contains(where: { $0.state != .away }) else { return workers(view) }
        rows.append(Row(label: "events", items: events(view)))
        rows.append(Row(label: "lanes", items: view.lanes.map { latency($0.spread, $0.lane) }))
        rows.append(Row(label: "pushes", items: pushes(view)))
        rows.append(Row(label: "delivered", items: deliveries(view)))
        rows.append(Row(label: "lag", items: lags(view)))
        rows.append(Row(label: "slowest", items: view.slowest.prefix(shownMax / 2).map(partition)))
        rows.append(Row(label: "kafka", items: kafka(view)))
        rows += clients(view)
        rows.append(
            Row(label: "brakes", items: view.brakes.map { Item("\($0): removal of dead tokens is stopped", .warning) }))
        rows.append(Row(label: "reasons", items: view.outcomes.prefix(shownMax).map(outcome)))
        rows.append(Row(label: "redis", items: redis(view)))
        rows += redisNodes(view)
        rows.append(Row(label: "process", items: process(view)))
        return rows
    }

    // MARK: - Rows

    private static func workers(_ view: FleetView) -> [TopLayout.Row] {
        let shown = view.workers.prefix(shownMax).map { worker in
            var items = [Item(worker.address), state(worker.state)]
            items += worker.reasons.map { Item($0, .bad) } + worker.notes.map { Item($0, .warning) }
            return Row(label: "worker", items: items)
        }
        let more = view.workers.count - shown.count
        return more > 0 ? shown + [Row(label: "", items: [Item("\(more) more", .quiet)])] : shown
    }

    private static func state(_ state: FleetView.Worker.State) -> TopLayout.Item {
        switch state {
        case .ready: Item("ok", .good)
        case .degraded: Item("degraded", .warning)
        case .notReady: Item("down", .bad)
        case .draining: Item("draining", .warning)
        case .away: Item("away", .bad)
        }
    }

    /// The label of the metric names the cause.
    private static func limits(_ view: FleetView) -> [TopLayout.Item] {
        guard view.intervalSeconds != nil else { return [Item("measuring", .quiet)] }
        if view.limits.isEmpty {
            if view.workers.contains(where: { $0.state == .notReady }) { return [Item("what is down", .bad)] }
            let isReady = view.workers.allSatisfy { $0.state == .ready }
            return [isReady ? Item("nothing", .good) : Item("no bound of the worker; see health", .warning)]
        }
        return view.limits.map { Item("\($0.cause) \(percent($0.share)) of the time", .warning) }
    }

    private static func events(_ view: FleetView) -> [TopLayout.Item] {
        var items: [TopLayout.Item?] = [
            rate(view.consumedRate, "read"), rate(view.settledRate, "settled"),
            count(view.pendingEvents, "events in work"), count(view.pendingRecipients, "recipients in work"),
            count(view.parked, "parked"),
        ]
        if let spread = view.endToEnd { items.append(latency(spread, "from Kafka to APNs' acceptance")) }
        if let letters = view.deadLetterRate, letters > 0 {
            items.append(Item("\(number(letters))/s dead letters", .bad))
        }
        return items.compactMap { $0 }
    }

    private static func pushes(_ view: FleetView) -> [TopLayout.Item] {
        var items = view.attemptRates.filter { $0.rate > 0 || $0.result == "accepted" }.map { result in
            Item(
                "\(number(result.rate))/s \(FleetView.words(ofResult: result.result))",
                result.result == "accepted" ? .plain : .warning)
        }
        if let spread = view.pushLatency { items.append(latency(spread, "APNs answers within")) }
        if let waiting = view.waitingForDevice, waiting > 0 {
            items.append(Item("\(number(waiting)) wait for another push of their device"))
        }
        return items
    }

    private static func deliveries(_ view: FleetView) -> [TopLayout.Item] {
        var items = [rate(view.deliveryRate, "by long connection")].compactMap { $0 }
        if let late = view.ackTimeoutRate, late > 0 { items.append(Item("\(number(late))/s without ack", .warning)) }
        return items
    }

    private static func lags(_ view: FleetView) -> [TopLayout.Item] {
        // Without a partition the end offsets are unknown, so 0 would be wrong.
        if view.assigned == 0 { return [Item("not known: no partition is assigned", .warning)] }
        return view.lags.map { lag in
            var text = lag.topic.map { "\($0) " } ?? ""
            text += lag.records.map { "\(number($0)) records behind" } ?? ""
            if let seconds = lag.seconds { text += ", \(duration(seconds))" }
            return Item(text, (lag.seconds ?? 0) > 60 ? .bad : .plain)
        }
            + [view.oldestSeconds.map { Item("oldest unsettled record \(duration($0))", $0 > 120 ? .bad : .plain) }]
            .compactMap { $0 }
    }

    private static func partition(_ partition: StatusFacts.Partition) -> TopLayout.Item {
        var text = "\(partition.topic)[\(partition.partition)]"
        if let lag = partition.lag { text += " \(number(Double(lag))) records behind" }
        if let age = partition.oldestSeconds { text += ", \(duration(age)) old" }
        if partition.isPaused { text += ", paused" }
        let isLate = partition.isPaused || (partition.oldestSeconds ?? 0) > 30
        return Item(text, isLate ? .warning : .plain)
    }

    private static func kafka(_ view: FleetView) -> [TopLayout.Item] {
        var items = [count(view.assigned, "partitions assigned")].compactMap { $0 }
        if let paused = view.paused, paused > 0 { items.append(Item("\(number(paused)) paused", .warning)) }
        let away = view.brokers.filter { !$0.isUp }
        if !view.brokers.isEmpty {
            items.append(Item("\(view.brokers.count - away.count) of \(view.brokers.count) brokers answer"))
        }
        return items + away.map { Item("\($0.name) away", .bad) }
    }

    private static func clients(_ view: FleetView) -> [TopLayout.Row] {
        // Entries with problems first, because the list may be cut.
        let sorted = view.clients.filter(\.isTroubled) + view.clients.filter { !$0.isTroubled }
        let shown = sorted.prefix(shownMax).map { client in
            let name = [client.app, client.environment, client.credential].compactMap { $0 }.filter { !$0.isEmpty }
            var items = [
                Item(name.joined(separator: " ")),
                Item("\(number(client.connections)) connections", client.isUnconnected ? .bad : .plain),
                Item("\(number(client.inFlight)) of at most \(number(client.limit)) pushes in flight"),
            ]
            if client.queued > 0 { items.append(Item("\(number(client.queued)) pushes queued", .warning)) }
            if client.breaker > 0 {
                items.append(
                    Item(client.breaker > 1 ? "breaker open: pushes wait" : "breaker probes with one push", .bad))
            }
            if client.isPaused { items.append(Item("APNs refuses the credential", .bad)) }
            if client.isReplacementRefused { items.append(Item("a changed credential is not in use", .warning)) }
            if let days = client.daysLeft {
                items.append(
                    Item("certificate ends in \(number(max(0, days.rounded(.down)))) d", days < 14 ? .bad : .quiet))
            }
            return Row(label: "apns", items: items)
        }
        let more = sorted.count - shown.count
        return more > 0 ? shown + [Row(label: "", items: [Item("\(more) more", .quiet)])] : shown
    }

    private static func outcome(_ outcome: FleetView.Outcome) -> TopLayout.Item {
        let words = [outcome.app, outcome.verdict, outcome.reason].filter { !$0.isEmpty }.joined(separator: " ")
        let tone: TopLayout.Tone =
            outcome.verdict == "rejected" || outcome.verdict == FleetView.Outcome.deadLetter
            ? .bad : outcome.verdict == "expired" ? .warning : .plain
        guard let rate = outcome.rate else { return Item("\(words): \(number(outcome.total)) in all", .quiet) }
        return Item("\(words): \(number(rate))/s", tone)
    }

    private static func redis(_ view: FleetView) -> [TopLayout.Item] {
        let isWhole = view.redisReady == view.shards
        var items = [Item("\(view.redisReady) of \(view.shards) shards connected", isWhole ? .plain : .bad)]
        if let spread = view.redisLatency { items.append(latency(spread, "replies within")) }
        if let depth = view.redisDepth { items.append(Item("\(number(depth)) commands wait")) }
        if let errors = view.redisErrorRate, errors > 0 { items.append(Item("\(number(errors))/s errors", .bad)) }
        if let keys = view.redisKeys { items.append(Item("\(number(keys)) keys", .quiet)) }
        return items + view.redisFaults.prefix(shownMax).map { Item($0, .bad) }
    }

    /// One row per cluster node. For a single server the row above is enough.
    private static func redisNodes(_ view: FleetView) -> [TopLayout.Row] {
        guard view.redisNodes.count > 1 else { return [] }
        let shown = view.redisNodes.prefix(shownMax).map { node in
            var items = [
                Item(node.place),
                Item(
                    "\(node.connected) of \(node.shards) shards connected", node.isTroubled ? .bad : .plain),
                Item("\(number(Double(node.waiting))) commands wait"),
            ]
            if let errors = node.errorRate, errors > 0 { items.append(Item("\(number(errors))/s errors", .bad)) }
            if let redirects = node.redirectRate, redirects > 0 {
                items.append(Item("\(number(redirects))/s redirected or deferred", .warning))
            }
            if let why = node.why { items.append(Item(why, .bad)) }
            return Row(label: "node", items: items)
        }
        let more = view.redisNodes.count - shown.count
        return more > 0 ? shown + [Row(label: "", items: [Item("\(more) more", .quiet)])] : shown
    }

    private static func process(_ view: FleetView) -> [TopLayout.Item] {
        var items: [TopLayout.Item] = []
        if let cpu = view.cpu { items.append(Item("CPU \(percent(cpu)) of a processor")) }
        if let bytes = view.memoryBytes { items.append(Item("memory \(number((bytes / 1_048_576).rounded())) MiB")) }
        if let files = view.openFiles { items.append(Item("\(number(files)) open descriptors", .quiet)) }
        if let lag = view.loopLagSeconds {
            items.append(Item("event loops at most \(duration(lag)) late", lag > 1 ? .bad : .quiet))
        }
        if let lost = view.lostLogLines, lost > 0 { items.append(Item("\(number(lost)) log lines lost", .warning)) }
        return items
    }

    // MARK: - Numbers

    private static func rate(_ value: Double?, _ what: String) -> TopLayout.Item? {
        value.map { Item("\(number($0))/s \(what)") }
    }

    private static func count(_ value: Double?, _ what: String) -> TopLayout.Item? {
        value.map { Item("\(number($0)) \(what)") }
    }

    private static func latency(_ spread: FleetView.Spread, _ what: String) -> TopLayout.Item {
        Item("\(what) \(duration(spread.p50)) (p50), \(duration(spread.p99)) (p99)", .quiet)
    }

    private static func percent(_ share: Double) -> String { FigureText.percent(share) }
    private static func number(_ value: Double) -> String { FigureText.number(value) }
    private static func duration(_ seconds: Double) -> String { FigureText.duration(seconds) }
}
