// SPDX-License-Identifier: Apache-2.0
/// The state at one moment: sums and rates over all workers that answer.
///
/// Rates cover the time since the previous look. They are nil without one: at the first look, and after a worker's
/// restart.
public struct FleetView: Sendable {
    /// A worker's answer.
    public struct Worker: Equatable, Sendable {
        public enum State: Equatable, Sendable {
            case ready, degraded, notReady, draining, away
        }

        public var address: String
        public var state: State
        /// Reasons why it is not ready or does not answer.
        public var reasons: [String]
        public var notes: [String]
    }

    /// The part of the shards' time, 0...1, in which a bound delayed work.
    public struct Limit: Equatable, Sendable {
        public var cause: String
        public var share: Double
    }

    public struct Lag: Equatable, Sendable {
        /// Nil if the worker reports it for all topics together.
        public var topic: String?
        public var records: Double?
        public var seconds: Double?
    }

    public struct Outcome: Equatable, Sendable {
        /// The verdict of unreadable records. `reason` is the rule that they broke.
        public static let deadLetter = "dead letter"

        public var app: String
        public var verdict: String
        public var reason: String
        /// Per second; nil if nothing happened in the interval, and `total` then counts since the workers' start.
        public var rate: Double?
        public var total: Double
    }

    /// Pushes of one app's credential set to one environment.
    public struct Client: Equatable, Sendable {
        public var app: String
        public var environment: String?
        public var credential: String?
        public var connections = 0.0
        public var inFlight = 0.0
        public var limit = 0.0
        public var queued = 0.0
        /// 0 closed, 1 half-open, 2 open; the worst of its scopes and workers.
        public var breaker = 0.0
        /// APNs refuses the credential.
        public var isPaused = false
        /// A changed credential was refused, and the previous one is in use.
        public var isReplacementRefused = false
        /// Days until its certificate expires; nil for a key, or if not reported.
        public var daysLeft: Double?

        /// An environment without pushes needs no connection.
        public var isUnconnected: Bool { connections == 0 && queued + inFlight > 0 }

        /// It needs an operator's attention.
        public var isTroubled: Bool {
            isUnconnected || breaker > 0 || isPaused || isReplacementRefused || (daysLeft ?? .infinity) < 14
        }
    }

    /// One Redis server, as all shards of all workers see it.
    public struct RedisNode: Equatable, Sendable {
        public var place: String
        /// Shards that are connected to it, and all shards that want to be.
        public var connected = 0
        public var shards = 0
        public var waiting: Int64 = 0
        /// The reason why a shard is not connected.
        public var why: String?
        /// Per second; nil if it is not a cluster's node, or without an earlier look.
        public var errorRate: Double?
        /// The rate of commands that it redirected or deferred.
        public var redirectRate: Double?

        /// It needs an operator's attention.
        public var isTroubled: Bool { connected < shards }
    }

    /// Quantiles of a histogram in the last interval, in seconds; nil without measurements.
    public struct Spread: Equatable, Sendable {
        public var p50: Double
        public var p99: Double
    }

    public var workers: [Worker] = []
    public var shards = 0
    /// Nil without an earlier look.
    public var intervalSeconds: Double?

    public var consumedRate: Double?
    public var settledRate: Double?
    public var deliveryRate: Double?
    public var ackTimeoutRate: Double?
    public var deadLetterRate: Double?
    /// Rates by verdict.
    public var verdictRates: [(verdict: String, rate: Double)] = []
    /// Rates of tries by result: accepted, rejected, refused, ambiguous.
    public var attemptRates: [(result: String, rate: Double)] = []
    /// The result of a try in words for people. `rejected` is the verdict of a push that ended, and not of a try.
    public static func words(ofResult result: String) -> String {
        switch result {
        case "rejected": "refused"
        case "refused": "not processed"
        case "ambiguous": "without an answer"
        default: result
        }
    }
    public var limits: [Limit] = []
    public var outcomes: [Outcome] = []
    public var endToEnd: Spread?
    /// Quantiles by lane, for lanes with measurements.
    public var lanes: [(lane: String, spread: Spread)] = []
    public var pushLatency: Spread?
    public var redisLatency: Spread?
    public var redisErrorRate: Double?
    /// Processors in use: 1 is one whole processor.
    public var cpu: Double?

    public var pendingEvents: Double?
    public var pendingRecipients: Double?
    public var waitingForDevice: Double?
    /// Parked records that have not returned.
    public var parked: Double?
    /// Records since the start with a key that is neither the conversation's id nor a user's.
    public var unusualKeys: Double?
    public var lags: [Lag] = []
    public var oldestSeconds: Double?
    /// Partitions that lag, slowest first.
    public var slowest: [StatusFacts.Partition] = []
    public var assigned: Double?
    public var paused: Double?
    /// Kafka's brokers by name, and whether they answer.
    public var brokers: [(name: String, isUp: Bool)] = []
    public var clients: [Client] = []
    public var brakes: [String] = []
    public var redisReady = 0
    public var redisFaults: [String] = []
    /// Servers with problems first.
    public var redisNodes: [RedisNode] = []
    public var redisDepth: Double?
    public var redisKeys: Double?
    public var loopLagSeconds: Double?
    public var memoryBytes: Double?
    public var openFiles: Double?
    /// Since the workers' start.
    public var lostLogLines: Double?

    public static let outcomesMax = 40
    public static let clientsMax = 100
    public static let partitionsMax = 20
    public static let redisNodesMax = 100

    /// - Parameter previous: the earlier answers of the same workers, by address.
    public init(_ looks: [WorkerLook], after previous: [WorkerLook], wallSeconds: Double) {
        let before = Dictionary(previous.map { ($0.address, $0) }, uniquingKeysWith: { $1 })
        let rates = FleetRates(looks, before)
        for look in looks { addWorker(look) }
        slowest = Self.slowest(looks.flatMap { $0.status?.partitions ?? [] })
        intervalSeconds = rates.longestSeconds
        addRates(rates)
        addGauges(looks.compactMap(\.metrics), wallSeconds: wallSeconds)
        addWaits(looks.compactMap(\.status))
        addRedisNodes(looks.flatMap { $0.status?.redisNodes ?? [] }, rates)
        addOutcomes(looks.compactMap(\.metrics), rates)
    }

    private mutating func addWorker(_ look: WorkerLook) {
        guard let status = look.status else {
            if case .away(let why) = look.answer {
                workers.append(Worker(address: look.address, state: .away, reasons: [why], notes: []))
            }
            return
        }
        let working: Worker.State = status.notes.isEmpty ? .ready : .degraded
        let state: Worker.State = status.isDraining ? .draining : status.isReady ? working : .notReady
        workers.append(
            Worker(address: look.address, state: state, reasons: status.missing, notes: status.notes))
        shards += status.shards
        redisReady += status.redisReady
        redisFaults += status.redisFaults.filter { !redisFaults.contains($0) }
        brakes += status.brakes.filter { !brakes.contains($0) }
    }

    private mutating func addRates(_ rates: FleetRates) {
        consumedRate = rates.rate(FleetMetrics.consumed)
        settledRate = rates.rate(FleetMetrics.settled)
        deliveryRate = rates.rate(FleetMetrics.deliveries)
        ackTimeoutRate = rates.rate(FleetMetrics.ackTimeouts)
        deadLetterRate = rates.rate(FleetMetrics.deadLetters)
        redisErrorRate = rates.rate(FleetMetrics.redisErrors)
        cpu = rates.rate(FleetMetrics.cpu)
        verdictRates = rates.rates(FleetMetrics.decisions, by: ["verdict"]).map { ($0.labels[0], $0.rate) }
        attemptRates = rates.rates(FleetMetrics.attempts, by: ["result"]).map { ($0.labels[0], $0.rate) }
        endToEnd = rates.spread(FleetMetrics.endToEnd)
        let named = Set(rates.rates(FleetMetrics.endToEnd + "_count", by: ["lane"]).map { $0.labels[0] }).sorted()
        lanes = named.compactMap { lane in
            rates.spread(FleetMetrics.endToEnd) { $0["lane"] == lane }.map { (lane, $0) }
        }
        pushLatency = rates.spread(FleetMetrics.pushLatency)
        redisLatency = rates.spread(FleetMetrics.redisSeconds)
        limits = rates.rates(FleetMetrics.backpressure, by: ["cause"]).compactMap { cause in
            let share = cause.rate / Double(max(1, shards))
            return share >= 0.005 ? Limit(cause: cause.labels[0], share: min(1, share)) : nil
        }
    }

    private mutating func addRedisNodes(_ seen: [StatusFacts.RedisNode], _ rates: FleetRates) {
        func byNode(_ name: String) -> [String: Double] {
            Dictionary(rates.rates(name, by: ["node"]).map { ($0.labels[0], $0.rate) }, uniquingKeysWith: +)
        }
        let (errors, redirects) = (byNode(FleetMetrics.redisErrors), byNode(FleetMetrics.redisRedirects))
        var byPlace: [String: RedisNode] = [:]
        for look in seen {
            guard byPlace[look.place] != nil || byPlace.count < Self.redisNodesMax else { continue }
            var node = byPlace[look.place] ?? RedisNode(place: look.place)
            node.connected += look.isReady ? 1 : 0
            node.shards += 1
            node.waiting = node.waiting &+ look.waiting
            node.why = node.why ?? look.why
            if let label = look.node, intervalSeconds != nil {
                node.errorRate = errors[label] ?? 0
                node.redirectRate = redirects[label] ?? 0
            }
            byPlace[look.place] = node
        }
        redisNodes = byPlace.values.sorted { one, other in
            one.isTroubled != other.isTroubled ? one.isTroubled : one.place < other.place
        }
    }

    private mutating func addGauges(_ pages: [MetricsPage], wallSeconds: Double) {
        func sum(_ name: String) -> Double? { Self.reduce(pages.map { $0.sum(name) }, +) }
        func max(_ name: String) -> Double? {
            Self.reduce(pages.map { Self.reduce($0.series(name).map(\.value), Swift.max) }, Swift.max)
        }
        pendingEvents = sum(FleetMetrics.pendingEvents)
        unusualKeys = sum(FleetMetrics.unusualKeys)
        pendingRecipients = sum(FleetMetrics.pendingRecipients)
        waitingForDevice = sum(FleetMetrics.waitingForDevice)
        parked = sum(FleetMetrics.parked).map { Swift.max(0, $0 - (sum(FleetMetrics.parkedSettled) ?? 0)) }
        oldestSeconds = max(FleetMetrics.watermarkAge)
        assigned = sum(FleetMetrics.assigned)
        paused = sum(FleetMetrics.paused)
        redisDepth = sum(FleetMetrics.redisDepth)
        redisKeys = max(FleetMetrics.redisKeys)
        loopLagSeconds = max(FleetMetrics.loopLag)
        memoryBytes = sum(FleetMetrics.memory)
        openFiles = sum(FleetMetrics.openFiles)
        lostLogLines = sum(FleetMetrics.lostLogLines)
        addLags(pages)
        addBrokers(pages)
        addClients(pages, wallSeconds: wallSeconds)
    }

    /// A worker that started after its records were parked has no count of them in its metrics, but it knows those that it read.
    private mutating func addWaits(_ statuses: [StatusFacts]) {
        if statuses.isEmpty { return }
        parked = max(parked ?? 0, Double(statuses.reduce(0) { $0 &+ $1.parkedRecords }))
    }

    private mutating func addLags(_ pages: [MetricsPage]) {
        var byTopic: [String: Lag] = [:]
        for page in pages {
            for series in page.series(FleetMetrics.lagRecords) {
                let topic = series["topic"]
                var lag = byTopic[topic ?? ""] ?? Lag(topic: topic)
                lag.records = (lag.records ?? 0) + series.value
                byTopic[topic ?? ""] = lag
            }
            for series in page.series(FleetMetrics.lagSeconds) {
                let topic = series["topic"]
                var lag = byTopic[topic ?? ""] ?? Lag(topic: topic)
                lag.seconds = Swift.max(lag.seconds ?? 0, series.value)
                byTopic[topic ?? ""] = lag
            }
        }
        lags = byTopic.sorted { $0.key < $1.key }.map(\.value)
    }

    private mutating func addBrokers(_ pages: [MetricsPage]) {
        var byName: [String: Bool] = [:]
        for series in pages.flatMap({ $0.series(FleetMetrics.brokerUp) }) {
            let name = series["broker"] ?? "?"
            // A broker is down if one worker cannot reach it, even if another can.
            byName[name] = (byName[name] ?? true) && series.value > 0
        }
        brokers = byName.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private mutating func addClients(_ pages: [MetricsPage], wallSeconds: Double) {
        var byKey: [[String]: Client] = [:]
        func each(_ name: String, _ change: (inout Client, MetricsPage.Series) -> Void) {
            for series in pages.flatMap({ $0.series(name) }) {
                let key = ["app", "env", "credential"].map { series[$0] ?? "" }
                guard byKey[key] != nil || byKey.count < Self.clientsMax else { continue }
                var client =
                    byKey[key]
                    ?? Client(app: series["app"] ?? "?", environment: series["env"], credential: series["credential"])
                change(&client, series)
                byKey[key] = client
            }
        }
        each(FleetMetrics.connections) { if $1["state"] == "ready" { $0.connections += $1.value } }
        each(FleetMetrics.inFlight) { $0.inFlight += $1.value }
        each(FleetMetrics.limit) { $0.limit += $1.value }
        each(FleetMetrics.queued) { $0.queued += $1.value }
        each(FleetMetrics.breaker) { $0.breaker = Swift.max($0.breaker, $1.value) }
        each(FleetMetrics.credentialPaused) { $0.isPaused = $0.isPaused || $1.value > 0 }
        // These metrics have labels for app and credential, but not for the environment.
        func eachOfCredential(_ name: String, _ change: (inout Client, Double) -> Void) {
            for series in pages.flatMap({ $0.series(name) }) {
                for (key, var client) in byKey
                where client.app == series["app"] && client.credential == series["credential"] {
                    change(&client, series.value)
                    byKey[key] = client
                }
            }
        }
        eachOfCredential(FleetMetrics.credentialEnd) { client, end in
            let days = (end - wallSeconds) / 86_400
            client.daysLeft = min(client.daysLeft ?? days, days)
        }
        eachOfCredential(FleetMetrics.credentialRefused) {
            $0.isReplacementRefused = $0.isReplacementRefused || $1 > 0
        }
        clients = byKey.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// Outcomes other than ordinary pushes, the most frequent first: in the interval, or if there were none, since the
    /// workers' start. Dead letters are included, as a verdict without an app.
    private mutating func addOutcomes(_ pages: [MetricsPage], _ rates: FleetRates) {
        let labels = ["app", "verdict", "reason"]
        func asOutcome(_ rule: String) -> [String] { ["", Outcome.deadLetter, rule] }
        var totals: [[String]: Double] = [:]
        for series in pages.flatMap({ $0.series(FleetMetrics.decisions) }) where series["reason"] != "ok" {
            totals[labels.map { series[$0] ?? "" }, default: 0] += series.value
        }
        for series in pages.flatMap({ $0.series(FleetMetrics.deadLetters) }) {
            totals[asOutcome(series["reason"] ?? ""), default: 0] += series.value
        }
        let ended = rates.rates(FleetMetrics.decisions, by: labels).map { (labels: $0.labels, rate: $0.rate) }
        let letters = rates.rates(FleetMetrics.deadLetters, by: ["reason"]).map {
            (labels: asOutcome($0.labels[0]), rate: $0.rate)
        }
        let recent = (ended + letters).filter { $0.rate > 0 && $0.labels[2] != "ok" }
        let rateByLabels = Dictionary(recent.map { ($0.labels, $0.rate) }, uniquingKeysWith: { $1 })
        let all = totals.filter { $0.value > 0 && (recent.isEmpty || rateByLabels[$0.key] != nil) }.map {
            Outcome(
                app: $0.key[0], verdict: $0.key[1], reason: $0.key[2], rate: rateByLabels[$0.key], total: $0.value)
        }
        let sorted = all.sorted {
            let (one, other) = ($0.rate ?? $0.total, $1.rate ?? $1.total)
            return one != other ? one > other : ($0.app, $0.verdict, $0.reason) < ($1.app, $1.verdict, $1.reason)
        }
        outcomes = Array(sorted.prefix(Self.outcomesMax))
    }

    private static func slowest(_ partitions: [StatusFacts.Partition]) -> [StatusFacts.Partition] {
        let behind = partitions.filter { $0.unsettled > 0 || ($0.lag ?? 0) > 0 || $0.isPaused }
        let sorted = behind.sorted { one, other in
            let (age, otherAge) = (one.oldestSeconds ?? 0, other.oldestSeconds ?? 0)
            if age != otherAge { return age > otherAge }
            return (one.lag ?? 0, other.partition) > (other.lag ?? 0, one.partition)
        }
        return Array(sorted.prefix(partitionsMax))
    }

    /// - Returns: nil for an empty list.
    private static func reduce(_ values: [Double?], _ combine: (Double, Double) -> Double) -> Double? {
        let known = values.compactMap { $0 }
        guard let first = known.first else { return nil }
        return known.dropFirst().reduce(first, combine)
    }
}
