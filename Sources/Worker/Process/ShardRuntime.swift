// SPDX-License-Identifier: Apache-2.0
import APNs
package import EventLoop
package import Kafka
import PushCore
import Redis
package import Telemetry

/// A running shard: the pipeline and its parts. Loop-bound.
package final class ShardRuntime: PipelineOwner {
    private let index: Int
    private let loop: Loop
    private let configuration: Configuration
    private let beat: Heartbeat
    private let onFatal: @Sendable (FatalCause) -> Void
    private let parts: ShardParts
    private let pipeline: Pipeline
    private var credentialWatch: CredentialWatch?
    private var endTimer: LoopTimer?
    private var ending: Ending?
    private var endingDeadline: UInt64 = 0
    private var whenDone: ((Bool) -> Void)?

    private static let lookNanos: UInt64 = 20_000_000
    private static let commitNanos: UInt64 = 500_000_000
    /// If drain time is left: a group that forms again refuses commits.
    private static let commitMostNanos: UInt64 = 2_000_000_000
    private static let closeNanos: UInt64 = 5_000_000_000
    private static let flushNanos: UInt64 = 2_000_000_000
    /// When leaving must be over, monotonic.
    private var leaveEndNanos: UInt64 = 0

    package init(
        index: Int, loop: Loop, configuration: Configuration, registry: MetricsRegistry, log: Log, beat: Heartbeat,
        shared: ProcessShared, kafka: any KafkaClients = NativeKafkaClients(), replays: (any StateReplaySource)? = nil,
        onFatal: @escaping @Sendable (FatalCause) -> Void
    ) throws(StartFault) {
        self.index = index
        self.loop = loop
        self.configuration = configuration
        self.beat = beat
        self.onFatal = onFatal
        if shared.timesStages {
            loop.stageClock = StageClock(registry) { [unowned loop] in loop.workNanos }
        }
        parts = ShardParts(
            index: index, loop: loop, configuration: configuration, registry: registry, log: log,
            shared: shared, kafka: kafka, replays: replays)
        pipeline = Pipeline(try parts.make())
        pipeline.owner = self
        do throws(LoopFault) {
            try pipeline.start()
        } catch {
            throw StartFault(error)
        }
        credentialWatch = CredentialWatch(
            loop: loop,
            apps: configuration.apps.compactMap { app in
                pipeline.apps[app.policy.id].map { (context: $0, credentials: app.credentials) }
            }, registry: registry, log: log, reportExpiry: parts.reportExpiry(of:app:name:))
        endTimer = LoopTimer(loop: loop) { [unowned self] in advanceEnding() }
    }

    /// The open work of the shard; empty without work.
    package var leftovers: [(part: String, count: Int)] { pipeline.figures.leftovers }

    /// States that cannot be (`ShardContext.mistake`).
    package var internalErrors: Int { Int(clamping: pipeline.shard.metrics.internalErrors.value) }

    package func status() -> ShardStatus {
        var clients: [ShardStatus.Client] = []
        var brakes: [ShardStatus.Brake] = []
        for app in pipeline.apps.values.sorted(by: { $0.policy.id < $1.policy.id }) {
            for cause in RemovalBrake.Cause.allCases where app.brake.isEngaged(cause) {
                brakes.append(ShardStatus.Brake(app: app.id, cause: cause.label))
            }
            for client in app.clients {
                let counts = client.apns.connectionCounts
                clients.append(
                    ShardStatus.Client(
                        app: app.policy.id, environment: client.environment.rawValue, isDefault: client.isDefault,
                        host: client.apns.endpoint.host, isUsable: client.apns.isUsable,
                        unusableBecause: client.apns.unusableBecause, isStalled: client.apns.isStalled,
                        isBreakerOpen: client.apns.isBreakerOpen, pausedBecause: client.apns.credentialPause?.label,
                        lacksCredential: client.apns.lacksCredential,
                        refusedCredential: credentialWatch?.refusal(of: app, credential: client.credential),
                        connections: counts.ready,
                        inFlight: client.apns.inFlight, queued: client.apns.queued,
                        heldDevices: client.apns.heldDevices))
            }
        }
        let (intakes, figures) = (pipeline.intakes, pipeline.figures)
        var status = ShardStatus(
            index: index, assignedPartitions: intakes.assignedCount, pausedPartitions: intakes.pausedCount,
            kafkaReach: intakes.kafkaReach, isRedisReady: pipeline.shard.store.client.isWhole,
            redisFault: pipeline.shard.store.client.faultText,
            redisRefusal: pipeline.shard.writes.refusal?.code,
            owedClaims: pipeline.recorder.owedCount + pipeline.userStates.owedCount,
            hasLostTokens: pipeline.tokenLoss.isStopped, olderData: pipeline.dataAge.olderText,
            pendingRecords: figures.pendingCount,
            pendingRecipients: pipeline.work.recipients.count,
            parkedRecords: pipeline.parking.count, waiting: figures.waiting, overShare: figures.appsOverShare,
            settledRecords: pipeline.shard.metrics.recordsSettled.value, clients: clients,
            apps: pipeline.apps.values.map { app in
                ShardStatus.App(id: app.id, accepted: app.metrics.accepted, opened: app.metrics.opens.value)
            }, brakes: brakes,
            endToEnd: pipeline.shard.metrics.endToEnd, partitions: intakes.partitionStatuses,
            readPartitions: intakes.readPartitions, heldPartitions: intakes.heldPartitions,
            awaitedTopics: intakes.awaitedTopics, unreadableTopics: intakes.unreadableTopics,
            restartedTopics: intakes.restartedTopics, heldTopics: intakes.heldTopics, kafkaNotes: figures.kafkaNotes,
            otherGroup: pipeline.dataAge.otherGroup.seen?.group,
            writeDenial: pipeline.recorder.outbox.denial?.description,
            refusedTopics: pipeline.recorder.outbox.refused.map {
                ShardStatus.RefusedTopic(topic: $0.topic, why: $0.why)
            },
            clock: pipeline.clock.note,
            redisPlaces: pipeline.shard.store.client.places,
            evictingPolicy: pipeline.tokenLoss.evictingPolicy,
            goesOnWithOlderData: !pipeline.dataAge.stopsReading)
        status.fleet = pipeline.fleet.entries
        return status
    }

    /// The process's note for the operator's pages of all workers; nil: it ends.
    func tellFleet(_ id: String, _ note: [UInt8]?, readsAll: Bool) {
        pipeline.fleet.tell(id, note, readsAll: readsAll)
    }

    /// Applies a reload's changes (`ConfigurationChange`) and new apps. Removed apps remain.
    ///
    /// Throws if a new app cannot be created, which is rare because its credentials were readable before.
    package func apply(_ configuration: Configuration) throws(StartFault) {
        for app in configuration.apps {
            if let context = pipeline.apps[app.policy.id] {
                context.apply(app, shardCount: parts.configuration.shardCount)
                credentialWatch?.apply(app.credentials, of: context)
            } else {
                let context = try parts.context(of: app)
                pipeline.add(context)
                credentialWatch?.add(context, app.credentials)
            }
        }
        credentialWatch?.readFiles()
    }

    /// Devices that a shard waits for are free now.
    package func didVacate(_ cells: [DeviceOccupancy.Cell]) { pipeline.sender.didVacate(cells) }

    package func didRelease(_ device: ReleasedDevice) { pipeline.parking.release(device) }

    // MARK: - The end

    /// Stops reading, finishes open work, and commits it. Calls `done(false)` if `seconds` passed first.
    ///
    /// All shards of a process settle before the first leaves, because a commit during another member's leaving is
    /// refused.
    package func settle(seconds: Double, _ done: @escaping (Bool) -> Void) {
        begin(.settling, nanos: UInt64(max(0, seconds) * 1_000_000_000), done)
        pipeline.stopIntake()
        advanceEnding()
    }

    /// Leaves the group and waits for the broker's last answers.
    package func leave(untilNanos endNanos: UInt64? = nil, _ done: @escaping (Bool) -> Void) {
        let now = loop.nowNanos
        leaveEndNanos = endNanos ?? (now &+ Self.closeNanos &+ Self.flushNanos)
        let leftNanos = leaveEndNanos > now ? leaveEndNanos - now : 0
        // The last answers of the broker have the rest.
        begin(.leaving, nanos: min(Self.closeNanos, leftNanos / 2), done)
        pipeline.close()
        advanceEnding()
    }

    private enum Ending {
        case settling, committing, leaving, flushing
    }

    private func begin(_ step: Ending, nanos: UInt64, _ done: @escaping (Bool) -> Void) {
        ending = step
        whenDone = done
        endingDeadline = loop.nowNanos &+ nanos
    }

    /// Checks a few times a second until the present step is over.
    private func advanceEnding() {
        let isOver = loop.nowNanos >= endingDeadline
        if ending == .settling, pipeline.figures.pendingCount == 0 { pipeline.counts.writeOrAsk() }
        switch ending {
        case .settling where isOver || (pipeline.figures.pendingCount == 0 && !pipeline.counts.hasUncounted):
            if pipeline.figures.pendingCount > 0 { pipeline.figures.logLeft() }
            ending = .committing
            let now = loop.nowNanos
            endingDeadline = max(now &+ Self.commitNanos, min(endingDeadline, now &+ Self.commitMostNanos))
            pipeline.intakes.commitNow()
        case .committing where isOver || hasCommitted: return finish(pipeline.figures.pendingCount == 0)
        case .committing where !pipeline.intakes.isCommitting: pipeline.intakes.commitNow()
        case .leaving where isOver:
            // Everything is settled and committed. Only the broker's confirmation is late.
            pipeline.shard.log.warning("the group did not confirm the leave in time")
            return pipelineDidClose()
        case .flushing where isOver || pipeline.recorder.outbox.isFlushed:
            return finish(pipeline.recorder.outbox.pendingCount == 0)
        case .flushing: pipeline.recorder.outbox.sendWaiting()
        case .settling, .committing, .leaving: break
        case nil: return
        }
        endTimer?.arm(afterNanos: Self.lookNanos)
    }

    private var hasCommitted: Bool { !pipeline.intakes.isCommitting && !pipeline.intakes.hasUncommitted }

    private func finish(_ isDone: Bool) {
        guard let done = whenDone else { return }
        ending = nil
        whenDone = nil
        endTimer?.cancel()
        done(isDone)
    }

    /// Closes every connection.
    package func shut() {
        credentialWatch = nil
        pipeline.shut()
    }

    // MARK: - Events of the pipeline

    func pipelineDidTick() { beat.mark() }

    func pipelineDidCommit() {
        if ending == .committing, hasCommitted { finish(pipeline.figures.pendingCount == 0) }
    }

    func pipelineDidClose() {
        guard ending == .leaving else { return }
        ending = .flushing
        let now = loop.nowNanos
        endingDeadline = now &+ min(Self.flushNanos, leaveEndNanos > now ? leaveEndNanos - now : 0)
        advanceEnding()
    }

    func pipelineDidMeetFatalError(_ cause: FatalCause) { onFatal(cause) }
}
