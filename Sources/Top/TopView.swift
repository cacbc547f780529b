/// The picture of one moment: sums and rates over all workers that answer.
///
/// Rates are of the time since the look before, and nil where there is none: at the first look, and of a worker that has
/// begun anew.
struct TopView: Sendable {
    /// How a worker answered.
    struct Worker: Equatable, Sendable {
        enum State: Equatable, Sendable {
            case ready, notReady, draining, away
        }

        var address: String
        var state: State
        /// Why it is not ready, or does not answer.
        var reasons: [String]
        var notes: [String]
    }

    /// Time that a bound held work back, of all time that the shards had: 0...1.
    struct Limit: Equatable, Sendable {
        var cause: String
        var share: Double
    }

    struct Lag: Equatable, Sendable {
        /// Nil: the worker tells it of all topics together.
        var topic: String?
        var records: Double?
        var seconds: Double?
    }

    struct Outcome: Equatable, Sendable {
        var app: String
        var verdict: String
        var reason: String
        /// A second; nil: none of the interval, `total` tells of the time since the workers' start.
        var rate: Double?
        var total: Double
    }

    /// Pushes of one app's credential set to one environment.
    struct Client: Equatable, Sendable {
        var app: String
        var environment: String?
        var credential: String?
        var connections = 0.0
        var inFlight = 0.0
        var limit = 0.0
        var queued = 0.0
        /// 0 closed, 1 asking, 2 open; the worst of its scopes and workers.
        var breaker = 0.0
        var isPaused = false
        /// Until its certificate ends, in days; nil: it is a key, or not told.
        var daysLeft: Double?
    }

    /// Quantiles of a histogram within the last interval, in seconds; nil: nothing was measured.
    struct Spread: Equatable, Sendable {
        var p50: Double
        var p99: Double
    }

    var workers: [Worker] = []
    var shards = 0
    /// Nil: no look before.
    var intervalSeconds: Double?

    var consumedRate: Double?
    var settledRate: Double?
    var deliveryRate: Double?
    var ackTimeoutRate: Double?
    var deadLetterRate: Double?
    /// By verdict.
    var verdictRates: [(verdict: String, rate: Double)] = []
    /// By result: accepted, rejected, refused, ambiguous.
    var attemptRates: [(result: String, rate: Double)] = []
    var limits: [Limit] = []
    var outcomes: [Outcome] = []
    var endToEnd: Spread?
    var pushLatency: Spread?
    var redisLatency: Spread?
    var redisErrorRate: Double?
    /// Processors in use: 1 is one of them, whole.
    var cpu: Double?

    var pendingEvents: Double?
    var pendingRecipients: Double?
    var waitingForDevice: Double?
    /// Records put off that have not come back.
    var parked: Double?
    var lags: [Lag] = []
    var oldestSeconds: Double?
    /// Those that are behind, the slowest first.
    var slowest: [StatusFacts.Partition] = []
    var assigned: Double?
    var paused: Double?
    /// Kafka's brokers by name, and whether they answer.
    var brokers: [(name: String, isUp: Bool)] = []
    var clients: [Client] = []
    var brakes: [String] = []
    var redisReady = 0
    var redisFaults: [String] = []
    var redisDepth: Double?
    var redisKeys: Double?
    var loopLagSeconds: Double?
    var memoryBytes: Double?
    var openFiles: Double?

    static let outcomesMax = 12
    static let clientsMax = 100
    static let partitionsMax = 20

    /// - Parameter previous: what the same workers answered before, by address.
    init(_ looks: [WorkerLook], after previous: [WorkerLook], wallSeconds: Double) {
        let before = Dictionary(previous.map { ($0.address, $0) }, uniquingKeysWith: { $1 })
        let rates = TopRates(looks, before)
        for look in looks { addWorker(look) }
        slowest = Self.slowest(looks.flatMap { $0.status?.partitions ?? [] })
        intervalSeconds = rates.longestSeconds
        addRates(rates)
        addGauges(looks.compactMap(\.metrics), wallSeconds: wallSeconds)
        addOutcomes(looks.compactMap(\.metrics), rates)
    }

    private mutating func addWorker(_ look: WorkerLook) {
        guard let status = look.status else {
            if case .away(let why) = look.answer {
                workers.append(Worker(address: look.address, state: .away, reasons: [why], notes: []))
            }
            return
        }
        let state: Worker.State = status.isDraining ? .draining : status.isReady ? .ready : .notReady
        workers.append(
            Worker(address: look.address, state: state, reasons: status.missing, notes: status.notes))
        shards += status.shards
        redisReady += status.redisReady
        redisFaults += status.redisFaults.filter { !redisFaults.contains($0) }
        brakes += status.brakes.filter { !brakes.contains($0) }
    }

    private mutating func addRates(_ rates: TopRates) {
        consumedRate = rates.rate(TopMetrics.consumed)
        settledRate = rates.rate(TopMetrics.settled)
        deliveryRate = rates.rate(TopMetrics.deliveries)
        ackTimeoutRate = rates.rate(TopMetrics.ackTimeouts)
        deadLetterRate = rates.rate(TopMetrics.deadLetters)
        redisErrorRate = rates.rate(TopMetrics.redisErrors)
        cpu = rates.rate(TopMetrics.cpu)
        verdictRates = rates.rates(TopMetrics.decisions, by: ["verdict"]).map { ($0.labels[0], $0.rate) }
        attemptRates = rates.rates(TopMetrics.attempts, by: ["result"]).map { ($0.labels[0], $0.rate) }
        endToEnd = rates.spread(TopMetrics.endToEnd)
        pushLatency = rates.spread(TopMetrics.pushLatency)
        redisLatency = rates.spread(TopMetrics.redisSeconds)
        limits = rates.rates(TopMetrics.backpressure, by: ["cause"]).compactMap { cause in
            let share = cause.rate / Double(max(1, shards))
            return share >= 0.005 ? Limit(cause: cause.labels[0], share: min(1, share)) : nil
        }
    }

    private mutating func addGauges(_ pages: [MetricsPage], wallSeconds: Double) {
        func sum(_ name: String) -> Double? { Self.reduce(pages.map { $0.sum(name) }, +) }
        func max(_ name: String) -> Double? {
            Self.reduce(pages.map { Self.reduce($0.series(name).map(\.value), Swift.max) }, Swift.max)
        }
        pendingEvents = sum(TopMetrics.pendingEvents)
        pendingRecipients = sum(TopMetrics.pendingRecipients)
        waitingForDevice = sum(TopMetrics.waitingForDevice)
        parked = sum(TopMetrics.parked).map { Swift.max(0, $0 - (sum(TopMetrics.parkedSettled) ?? 0)) }
        oldestSeconds = max(TopMetrics.watermarkAge)
        assigned = sum(TopMetrics.assigned)
        paused = sum(TopMetrics.paused)
        redisDepth = sum(TopMetrics.redisDepth)
        redisKeys = max(TopMetrics.redisKeys)
        loopLagSeconds = max(TopMetrics.loopLag)
        memoryBytes = sum(TopMetrics.memory)
        openFiles = sum(TopMetrics.openFiles)
        addLags(pages)
        addBrokers(pages)
        addClients(pages, wallSeconds: wallSeconds)
    }

    private mutating func addLags(_ pages: [MetricsPage]) {
        var byTopic: [String: Lag] = [:]
        for page in pages {
            for series in page.series(TopMetrics.lagRecords) {
                let topic = series["topic"]
                var lag = byTopic[topic ?? ""] ?? Lag(topic: topic)
                lag.records = (lag.records ?? 0) + series.value
                byTopic[topic ?? ""] = lag
            }
            for series in page.series(TopMetrics.lagSeconds) {
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
        for series in pages.flatMap({ $0.series(TopMetrics.brokerUp) }) {
            let name = series["broker"] ?? "?"
            // Away is what one worker sees, even if another still reaches it.
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
        each(TopMetrics.connections) { if $1["state"] == "ready" { $0.connections += $1.value } }
        each(TopMetrics.inFlight) { $0.inFlight += $1.value }
        each(TopMetrics.limit) { $0.limit += $1.value }
        each(TopMetrics.queued) { $0.queued += $1.value }
        each(TopMetrics.breaker) { $0.breaker = Swift.max($0.breaker, $1.value) }
        each(TopMetrics.credentialPaused) { $0.isPaused = $0.isPaused || $1.value > 0 }
        for series in pages.flatMap({ $0.series(TopMetrics.credentialEnd) }) {
            let days = (series.value - wallSeconds) / 86_400
            for (key, client) in byKey where client.app == series["app"] && client.credential == series["credential"] {
                byKey[key]?.daysLeft = min(client.daysLeft ?? days, days)
            }
        }
        clients = byKey.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// What ended otherwise than by an ordinary push, the most frequent first: within the interval, or where nothing did,
    /// since the workers' start.
    private mutating func addOutcomes(_ pages: [MetricsPage], _ rates: TopRates) {
        let labels = ["app", "verdict", "reason"]
        var totals: [[String]: Double] = [:]
        for series in pages.flatMap({ $0.series(TopMetrics.decisions) }) where series["reason"] != "ok" {
            totals[labels.map { series[$0] ?? "" }, default: 0] += series.value
        }
        let recent = rates.rates(TopMetrics.decisions, by: labels).filter { $0.rate > 0 && $0.labels[2] != "ok" }
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

    /// Nil: there is nothing to put together.
    private static func reduce(_ values: [Double?], _ combine: (Double, Double) -> Double) -> Double? {
        let known = values.compactMap { $0 }
        guard let first = known.first else { return nil }
        return known.dropFirst().reduce(first, combine)
    }
}
