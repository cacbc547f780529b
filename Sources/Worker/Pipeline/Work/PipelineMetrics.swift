// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Telemetry

/// The metrics of one shard's pipeline; cells of its thread, summed over shards when scraped.
final class PipelineMetrics {
    let recordsConsumed: Counter
    let recordsSettled: Counter
    let settledBefore: Counter
    let duplicates: Counter
    let outbox: OutboxMetrics
    let redisRetries: Counter
    let lateEvents: Counter
    let internalErrors: Counter
    let unclaimed: Counter
    let parked: Counter
    let parkedWork: Counter
    let parkedSettled: Counter
    /// Written and finished ones.
    let chunks: Counter
    private let chunksSettled: Counter
    let tokenLoss: Gauge
    let olderData: Gauge
    let rollbacks: Counter
    let replayed: Counter
    /// Outcomes that the statistics lack.
    let statisticsLost: Counter
    let redisKeys: Gauge
    let rebalances: Counter
    let assignmentsLost: Counter
    let partitionRestarts: Counter
    let commits: Counter
    let commitFailures: Counter
    let gaps: Counter
    let assignedPartitions: Gauge
    let pausedPartitions: Gauge
    let pendingEvents: Gauge
    let pendingRecipients: Gauge
    let waitingForDevice: Gauge
    let scheduled: Gauge
    let oldestUnsettled: Gauge
    let loopLag: Gauge
    /// From the broker's timestamp of the event to APNs' acceptance, in the order of `PushLane`.
    let endToEnd: [Histogram]
    var backpressure: Backpressure
    let clock: ClockMetrics
    let kafka: KafkaMetrics
    private var lags: [String: LagMetrics] = [:]
    private let registry: MetricsRegistry
    private var deadLetters: [BadRecord.Rule: Counter] = [:]
    private var unknownFieldRecords: [InputClass: [String: Counter]] = [:]
    private let unusualEventKeys: Counter
    private let unusualStateKeys: Counter
    /// Headers of events records that are not used.
    let malformedTraceparents: Counter
    /// Fields without a name in hashes that others write.
    let emptyMembers: Counter
    let emptyDevices: Counter
    private static let unusualKeys =
        "Records with a key that is neither the conversation's id nor a user's: they have no order."
    private static let emptyFields = "Empty field names in g: and p: that were skipped."

    static let boundsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 2.5, 5, 10, 30, 60, 300, 600]

    init(_ registry: MetricsRegistry) {
        func counter(_ name: String, _ help: String, _ labels: [(String, String)] = []) -> Counter {
            registry.counter("carillon_" + name, help: help, labels: labels)
        }
        func gauge(_ name: String, _ help: String, _ combine: Gauge.Combine = .sum) -> Gauge {
            registry.gauge("carillon_" + name, help: help, combine: combine)
        }
        recordsConsumed = counter("events_consumed_total", "Records read from the input topics.")
        recordsSettled = counter("events_settled_total", "Records with every outcome recorded.")
        settledBefore = counter(
            "events_settled_before_total", "Records read again and skipped because an earlier owner had settled them.")
        self.registry = registry
        duplicates = counter("duplicates_suppressed_total", "Recipients ended by an earlier delivery of the event.")
        outbox = OutboxMetrics(registry)
        redisRetries = counter("redis_step_retries_total", "Steps repeated because Redis did not answer.")
        lateEvents = counter(
            "late_events_total", "Answers, timers and ends for work that had ended or gone on: normal.")
        internalErrors = counter(
            "internal_errors_total", "States that cannot be: mistakes of the worker's own, named in its log.")
        unclaimed = counter(
            "redis_unclaimed_total", "Recipients decided while Redis took no writes: pushed without a badge.")
        parked = counter(
            "redis_owed_claims_total", "Claims that Redis refused, kept in carillon.parked until Redis accepts them.")
        parkedWork = counter("parked_total", "Records written to carillon.parked for deferred work.")
        chunks = counter("chunks_total", "Chunks of large groups written to carillon.chunks.")
        chunksSettled = counter("chunks_settled_total", "Chunks of large groups with every outcome recorded.")
        parkedSettled = counter(
            "parked_settled_total", "Records of carillon.parked that ended: processed, paid or written again.")
        rebalances = counter("kafka_rebalances_total", "Revocations of partitions.")
        assignmentsLost = counter("kafka_assignment_lost_total", "Partitions lost without notice.")
        partitionRestarts = counter(
            "kafka_partition_restarts_total", "Partitions that began again at a lower offset than the one due.")
        commits = counter("kafka_commits_total", "Offset commits.", [("result", "ok")])
        commitFailures = counter("kafka_commits_total", "Offset commits.", [("result", "failed")])
        gaps = counter(
            "kafka_gap_records_total",
            "Records that Kafka deleted before they were read: retention was faster than this worker.")
        assignedPartitions = gauge("kafka_assigned_partitions", "Partitions of this process.")
        redisKeys = gauge("redis_keys", "Keys of the database at the last look.", .max)
        tokenLoss = gauge(
            "token_loss", "1: Redis seems to have lost its tokens; no user ends as no_token.", .max)
        olderData = gauge(
            "redis_older_data",
            "1: Redis has older data than before, and user state since then is being applied again.", .max)
        rollbacks = counter("redis_rollbacks_total", "How often this shard saw Redis return with older data.")
        statisticsLost = counter(
            "stats_lost_total", "Outcomes that are missing in the statistics, because Redis did not take them in time.")
        replayed = counter("state_replayed_total", "Records of user state applied again after Redis had older data.")
        pausedPartitions = gauge("kafka_paused_partitions", "Partitions paused because a bound is reached.")
        pendingEvents = gauge("pending_events", "Records read with unsettled offsets.")
        pendingRecipients = gauge("pending_recipients", "Recipients in work.")
        waitingForDevice = gauge("device_lane_waiting", "Pushes that wait for another of the same device.")
        scheduled = gauge("scheduled_messages", "Scheduled messages in memory that wait for their time.")
        oldestUnsettled = gauge("watermark_age_seconds", "Age of the oldest unsettled record.", .max)
        loopLag = gauge("loop_lag_seconds", "Longest turn of a shard's loop since the last sample.", .max)
        backpressure = Backpressure(registry)
        clock = ClockMetrics(registry)
        kafka = KafkaMetrics(registry)
        endToEnd = PushLane.allCases.map { lane in
            registry.histogram(
                "carillon_event_end_to_end_seconds", help: "From Kafka's timestamp to APNs' acceptance.",
                labels: [("lane", "\(lane.name)")], bounds: Self.boundsSeconds, scale: 1e-3, precisionBits: 7)
        }
        unusualEventKeys = counter("unusual_keys_total", Self.unusualKeys, [("kind", "events")])
        unusualStateKeys = counter("unusual_keys_total", Self.unusualKeys, [("kind", "user_state")])
        malformedTraceparents = counter(
            "malformed_traceparents_total",
            "Headers traceparent of events records that are malformed, and not passed on.")
        emptyMembers = counter("empty_fields_total", Self.emptyFields, [("key", "g")])
        emptyDevices = counter("empty_fields_total", Self.emptyFields, [("key", "p")])
        for rule in BadRecord.Rule.allCases {
            deadLetters[rule] = counter(
                "dlq_records_total", "Records sent to the dead-letter topic, by the rule they broke.",
                [("reason", rule.rawValue)])
        }
    }

    /// Of one consumer.
    func brokers() -> BrokerMetrics { BrokerMetrics(registry) }

    /// Created when the topic's lag is first known, because no earlier number would be true.
    func lag(ofTopic topic: String) -> LagMetrics {
        if let known = lags[topic] { return known }
        let made = LagMetrics(registry, topic: topic)
        lags[topic] = made
        return made
    }

    func unusualKey(_ inputClass: InputClass) {
        if inputClass == .userState { unusualStateKeys.add() } else { unusualEventKeys.add() }
    }

    /// Created with the first such record of an app. A configured app, so their number is bounded.
    func unknownFields(_ inputClass: InputClass, app: String) {
        if let known = unknownFieldRecords[inputClass]?[app] { return known.add() }
        let made = registry.counter(
            "carillon_unknown_fields_total",
            help: "Records read with fields that no reader knows, which have no effect.",
            labels: [("kind", inputClass == .userState ? "user_state" : "events"), ("app", app)])
        unknownFieldRecords[inputClass, default: [:]][app] = made
        made.add()
    }

    func deadLetter(_ rule: BadRecord.Rule) { deadLetters[rule]?.add() }

    func settled(_ inputClass: InputClass) {
        switch inputClass {
        case .events, .userState: recordsSettled.add()
        case .parked: parkedSettled.add()
        case .chunks: chunksSettled.add()
        }
    }

    func accepted(_ kafkaMs: Int64, _ lane: PushLane, nowMs: Int64) {
        if kafkaMs <= 0 || !endToEnd.indices.contains(Int(lane.rawValue)) { return }
        endToEnd[Int(lane.rawValue)].observe(UInt64(max(0, nowMs &- kafkaMs)))
    }
}

/// The metrics of one app within one shard. Labels come from closed sets only.
final class AppMetrics {
    let deliveries: Counter
    let ackTimeouts: Counter
    let opens: Counter
    let uncheckedOpens: Counter
    let arrivals: Counter
    let coalesced: Counter
    private let app: String
    private let registry: MetricsRegistry
    /// Searched linearly: there are few, and nearly all pushes end as the first.
    private var decisions: [(verdict: Verdict, reason: String, count: Counter)] = []
    private var removals: [String: Counter] = [:]
    private var withheld: [String: Counter] = [:]
    private var brakes: [String: Gauge] = [:]
    private var changes: [String: Counter] = [:]

    init(_ registry: MetricsRegistry, app: String) {
        self.registry = registry
        self.app = app
        let labels = [("app", app)]
        deliveries = registry.counter(
            "carillon_deliveries_total", help: "Devices sent to by the long connection.", labels: labels)
        ackTimeouts = registry.counter(
            "carillon_delivery_ack_timeouts_total", help: "Deliveries without an ack in time.", labels: labels)
        coalesced = registry.counter(
            "carillon_coalesced_total", help: "Messages to a device that a later push summed up.", labels: labels)
        arrivals = registry.counter(
            "carillon_arrived_reports_total", help: "Pushes that reached their device, first report of each.",
            labels: labels)
        opens = registry.counter(
            "carillon_open_reports_total", help: "Open reports, the first of each push and device.", labels: labels)
        uncheckedOpens = registry.counter(
            "carillon_open_reports_unchecked_total", help: "Open reports without a matching msg_id.", labels: labels)
        begin()
    }

    /// A rate needs a first value of 0: known series exist from the start, the others from their first case.
    private func begin() {
        decisions.append((.accepted, "ok", decisionCounter(.accepted, "ok")))
        for reason in ["Unregistered", "ExpiredToken", "BadDeviceToken", "DeviceTokenNotForTopic"] {
            count(&removals, reason, Self.removed, by: 0)
        }
        for cause in RemovalBrake.Cause.allCases {
            count(&withheld, cause.label, Self.kept, by: 0)
            brake(cause.label, isEngaged: false)
        }
        for outcome in ["applied", "repeated", BadRecord.reason] + StateOutcome.Ignored.allCases.map(\.rawValue) {
            count(&changes, outcome, Self.changed, by: 0)
        }
    }

    /// - Parameter reason: from a closed set; an unknown reason of APNs counts as `other`.
    func decided(_ verdict: Verdict, _ reason: String) {
        // By index: the array's iterator would copy each element, with its references.
        for index in decisions.indices
        where decisions[index].verdict == verdict && decisions[index].reason == reason {
            return decisions[index].count.add()
        }
        let counter = decisionCounter(verdict, reason)
        decisions.append((verdict, reason, counter))
        counter.add()
    }

    private func decisionCounter(_ verdict: Verdict, _ reason: String) -> Counter {
        registry.counter(
            "carillon_decisions_total", help: "Ended (event, device) pairs by verdict and reason.",
            labels: [("app", app), ("verdict", verdict.rawValue), ("reason", reason)])
    }

    /// Pushes that APNs accepted.
    var accepted: UInt64 {
        decisions.reduce(0) { $1.verdict == .accepted ? $0 &+ $1.count.value : $0 }
    }

    func tokenRemoved(_ cause: String) { count(&removals, cause, Self.removed) }

    func removalWithheld(_ cause: String) { count(&withheld, cause, Self.kept) }

    func brake(_ cause: String, isEngaged: Bool) {
        let gauge =
            brakes[cause]
            ?? registry.gauge(
                "carillon_token_removal_brake", help: "1: dead tokens of this cause are not removed.",
                labels: [("app", app), ("reason", cause)], combine: .max)
        brakes[cause] = gauge
        gauge.set(isEngaged ? 1 : 0)
    }

    func applied(_ outcome: StateOutcome) {
        let text =
            switch outcome {
            case .applied: "applied"
            case .ignored(let why): why.rawValue
            case .repeated: "repeated"
            case .refused: BadRecord.reason
            }
        count(&changes, text, Self.changed)
    }

    private struct Family {
        var name: String
        var help: String
        var label: String
    }

    private static let removed = Family(
        name: "carillon_tokens_invalidated_total", help: "Tokens removed because of APNs' answer.", label: "reason")
    private static let kept = Family(
        name: "carillon_token_removals_withheld_total",
        help: "Dead tokens not removed because too many died of one cause.", label: "reason")
    private static let changed = Family(
        name: "carillon_user_state_total", help: "Records of user state by outcome.", label: "outcome")

    private func count(
        _ counters: inout [String: Counter], _ value: String, _ family: Family, by amount: UInt64 = 1
    ) {
        if let counter = counters[value] { return counter.add(amount) }
        let counter = registry.counter(family.name, help: family.help, labels: [("app", app), (family.label, value)])
        counters[value] = counter
        counter.add(amount)
    }
}
