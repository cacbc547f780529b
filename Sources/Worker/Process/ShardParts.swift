// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Creates the parts of a shard's pipeline from the configuration. On the shard's loop.
struct ShardParts {
    var index: Int
    var loop: Loop
    var configuration: Configuration
    var registry: MetricsRegistry
    var log: Log
    var shared: ProcessShared
    /// Where the Kafka clients come from.
    var kafka: any KafkaClients = NativeKafkaClients()
    /// Nil: user state is read again from the cluster.
    var replays: (any StateReplaySource)?

    func make() throws(StartFault) -> PipelineParts {
        let topics = configuration.kafka.topics
        let client = configuration.kafka.client(id: "carillon-\(index)", log: kafkaLog)
        let events: KafkaConsumer
        let userState: KafkaConsumer
        let chunks: KafkaConsumer
        let producers: OutProducers
        do throws(KafkaFault) {
            events = try consumer(client.member("\(index)"), of: [topics.events])
            // A separate member, so that waiting pushes never hold back user state.
            userState = try consumer(
                client.member("\(index)-state"), of: [topics.userState, topics.parked], reportsEnds: true)
            // A separate member, so that a giant group holds back no other message.
            chunks = try consumer(client.member("\(index)-chunks"), of: [topics.chunks])
            producers = try OutProducers(client, of: kafka)
        } catch {
            throw StartFault("Kafka: \(error)")
        }
        let metrics = PipelineMetrics(registry)
        return PipelineParts(
            loop: loop, limits: limits, apps: try apps(), events: events, userState: userState,
            chunks: chunks,
            outbox: Outbox(producers: producers, loop: loop, log: log, metrics: metrics.outbox),
            topics: try OutTopics(topics, producers: producers), store: try store(), log: log, metrics: metrics,
            results: configuration.results, stateResults: configuration.stateResults,
            stopsAtTokenLoss: configuration.stopsAtTokenLoss,
            replaySource: replays
                ?? TopicReplaySource(
                    client: configuration.kafka.client(id: "carillon-\(index)-replay", log: kafkaLog),
                    topic: topics.userState),
            traces: TracePlan(configuration.trace), statisticsDays: configuration.statisticsDays,
            sessionMs: client.sessionMs,
            waits: shared.timesStages ? StageWaits(registry) : nil, shared: shared,
            shardIndex: index)
    }

    private func consumer(
        _ configuration: KafkaConfiguration, of topics: [String], reportsEnds: Bool = false
    ) throws(KafkaFault) -> KafkaConsumer {
        KafkaConsumer(try kafka.group(configuration, topics: topics, reportsEnds: reportsEnds))
    }

    private var limits: PipelineLimits {
        var limits = PipelineLimits()
        // Several apps: what one app has unsettled must not keep the others' records, which are settled behind it, from being read.
        limits.window = OffsetLedger.Limits(
            records: configuration.window.records, span: configuration.apps.count > 1 ? PipelineLimits.sharedSpan : 0,
            bytes: configuration.window.bytes)
        limits.directMax = configuration.planner.directMax
        limits.readsTraceparents = configuration.kafka.readsTraceparents
        limits.lanes = configuration.lanes
        limits.group = configuration.kafka.group
        limits.isShared = configuration.apps.count > 1
        limits.recipientsMax = max(limits.recipientsMax, configuration.window.records)
        return limits
    }

    /// librdkafka's lines at our levels (syslog's numbers: 3 is an error, 4 a warning); one of each kind per ten
    /// seconds.
    private var kafkaLog: KafkaLogSink {
        let log = log
        let lines = Guarded(LogLimiter<String>())
        return { line in
            if line.level <= 4, line.facility == "FAIL" {
                // The consumers report it as their own error, so it appears in the log once.
                return log.debug("librdkafka", ["facility": "FAIL", "text": .string(line.text)])
            }
            let admitted =
                line.level > 4 ? 0 : lines.withLock { $0.admit(line.facility, nowNanos: Loop.monotonicNanos()) }
            guard let suppressed = admitted else { return }
            let fields: KeyValuePairs<StaticString, LogValue> = [
                "facility": .string(line.facility), "text": .string(line.text),
                "suppressed": .int(Int(clamping: suppressed)),
            ]
            switch line.level {
            // An old broker: the only effect is that it might create the producer's topics.
            case _ where line.facility == "AUTOCREATE": log.debug("librdkafka", fields)
            case ...3: log.error("librdkafka", fields)
            case 4: log.warning("librdkafka", fields)
            default: log.debug("librdkafka", fields)
            }
        }
    }

    private func store() throws(StartFault) -> StateStore {
        var limits = configuration.redis.limits
        // Every recipient in progress may have open reads, a claim and owner lookups.
        limits.pipelineMax = max(limits.pipelineMax, 8 * self.limits.recipientsMax)
        do throws(TLSFault) {
            return StateStore(
                try RedisServers(
                    loop: loop, configuration.redis.topology, limits: limits, log: log, metrics: registry))
        } catch {
            throw StartFault("Redis: \(error.description)")
        }
    }

    private func apps() throws(StartFault) -> [AppContext] {
        var contexts: [AppContext] = []
        for app in configuration.apps { contexts.append(try context(of: app)) }
        return contexts
    }

    func context(of app: Configuration.App) throws(StartFault) -> AppContext {
        var clients: [AppContext.Client] = []
        for credential in app.credentials { clients += try self.clients(of: app, credential) }
        return AppContext(
            policy: app.policy, templates: app.templates, metrics: AppMetrics(registry, app: app.policy.id),
            rate: Double(app.limits.rate) / Double(configuration.shardCount), coalesceNanos: app.coalesceNanos,
            sendsDigest: app.sendsDigest, removals: app.limits.removals, suspects: app.limits.suspects,
            share: app.limits.share, backgroundPerHour: app.limits.backgroundPerHour, clients: clients)
    }

    /// One client per environment. A token's own environment selects it.
    private func clients(
        of app: Configuration.App, _ credential: Configuration.Credential
    ) throws(StartFault) -> [AppContext.Client] {
        // Without it the app's pushes wait, and the others' go on. `CredentialWatch` looks for it again, and names the reason.
        let loaded = try? credential.load().get()
        var limits = app.limits.client
        limits.checkAfterNanos = Sender.checkAfterNanos
        limits.holdNanos = Sender.holdNanos
        limits.lanes = configuration.lanes
        if let loaded { reportExpiry(of: loaded, app: app.policy.id, name: credential.name) }
        var clients: [AppContext.Client] = []
        for environment in [APNsEnvironment.production, .sandbox] {
            do throws(APNsFault) {
                let client = try APNsClient(
                    loop: loop, endpoint: app.endpoints[environment], credential: loaded, limits: limits,
                    metrics: APNsMetrics(
                        registry: registry, app: app.policy.id, environment: environment.rawValue,
                        credential: credential.name),
                    log: log.with(["app": .string(app.policy.id), "env": .string(environment.rawValue)]))
                clients.append(
                    AppContext.Client(
                        environment: environment, credential: credential.name, apns: client,
                        isDefault: environment == app.environment, usesProviderKey: credential.isProviderKey))
            } catch {
                throw StartFault(error.description)
            }
        }
        return clients
    }

    /// A provider key does not expire, so it has no series.
    func reportExpiry(of credential: APNsCredential, app: String, name: String) {
        guard let end = try? credential.validUntilSeconds() else { return }
        registry.gauge(
            "carillon_credential_expiry_timestamp_seconds", help: "End of a certificate's validity, Unix time",
            labels: [("app", app), ("credential", name)], combine: .max
        ).set(Double(end))
    }
}
