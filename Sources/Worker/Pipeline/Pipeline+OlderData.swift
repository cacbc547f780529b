import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Redis returned with older data (`DataAge`): the pipeline uses nothing that it says of users, reads no events, and applies user
/// state since then again. Then reading goes on.
extension Pipeline {
    /// Log lines that a failing replay would repeat.
    enum ReplayLine: Hashable { case failed }

    /// Beats in each server. Once a second, and whenever a link is ready: the answer to a link's first command comes before
    /// those to its reads.
    func beat() {
        guard shard.store.client.isReady else { return }
        let servers = shard.store.client.tagNumbers(StateStore.serverWord)
        beatPlaces = userState.settledPlaces
        beatsAwaited = Set(servers)
        beatRound = (beatRound &+ 1) & 0xFF_FFFF
        beatNanos = shard.nowNanos
        for var request in dataAge.requests(servers, keys: tokenLoss.keysBefore) {
            request.offsets = beatPlaces.merging(request.noted) { place, _ in place }
            request.restarted = userState.restartedPlaces
            try? shard.store.beat(request, nowMs: shard.nowMs, tag: beatTag(.beat, request.server))
        }
    }

    private func beatTag(_ stage: Tag.Stage, _ server: Int) -> UInt64 {
        Tag(WorkRef(slot: server, generation: beatRound), stage).bits
    }

    /// Once a second. User state is committed after the answers: every server has then noted the offsets that the commit settles,
    /// and the commit says so.
    func beatAndCommit() {
        let isLate = !beatsAwaited.isEmpty || !shard.store.client.isReady
        if isLate { userState.consumer.commitChanges() }
        beat()
    }

    /// The next owner of a partition compares the offset that a commit names, after a restart too.
    func compareCommitted() {
        var noted: [Int32: Int64] = [:]
        for (partition, offset) in userState.consumer.committedNotes where partition.topic == 0 {
            noted[partition.partition] = offset
        }
        dataAge.learn(noted: noted, shard.store.client.tagNumbers(StateStore.serverWord))
        beat()
    }

    /// All servers have noted these offsets.
    private func didBeatEverywhere() {
        userState.restartedPlaces = []
        if !dataAge.isBehind {
            for (partition, offset) in beatPlaces {
                userState.consumer.commitNotes[TopicPartition(topic: 0, partition: partition)] = offset
            }
        }
        userState.consumer.commitChanges()
    }

    /// - Parameter round: of the beat, as its tag has it.
    func didBeat(_ ref: WorkRef, _ reply: borrowing RedisReply) {
        guard let beat = StateStore.Beat(reply) else { return }
        let server = ref.slot
        let isLast = ref.generation == beatRound
        let before = dataAge.losses[server]
        dataAge.didBeat(server, beat, compared: isLast)
        serverAheadMs = beat.nowMs &- shard.nowMs
        if isLast, server == timeServer { didBeatAtTime(beat) }
        if let loss = beat.loss, loss.id != before?.id { didReturnOlder(server, loss) }
        applyAge()
        if isLast, beatsAwaited.remove(server) != nil, beatsAwaited.isEmpty { didBeatEverywhere() }
    }

    /// A replica takes no beat, and may be older than the master was.
    func didFailToBeat(_ server: Int, _ fault: RedisFault) {
        if server == timeServer { askTime() }
        guard fault.refusesWrite else { return }
        try? shard.store.lookAtBeat(server: server, tag: beatTag(.beatLook, server))
    }

    func didLookAtBeat(_ server: Int, count: Int64?) {
        dataAge.didLook(server, count: count)
        applyAge()
    }

    private func didReturnOlder(_ server: Int, _ loss: StateStore.Loss) {
        shard.metrics.rollbacks.add()
        shard.log.error(
            "Redis returned with older data: nothing is decided by it until user state since then is applied again",
            [
                "server": .int(server), "data_of": .string(Self.timeText(loss.fromMs)),
                "reading": .string(stopsAtTokenLoss ? "stopped" : "goes on"),
            ])
        // The replay of an earlier loss began too late.
        replay?.cancel()
        replay = nil
    }

    /// The time of the older data, for operators; nil: Redis has lost nothing.
    var olderDataText: String? { dataAge.isBehind ? Self.timeText(dataAge.sinceMs ?? 0) : nil }

    private static func timeText(_ ms: Int64) -> String {
        ms > 0 ? Timestamp.text(seconds: ms / 1000, nanos: ms % 1000 * 1_000_000) : "an unknown time"
    }

    /// Stops or goes on if `dataAge` has changed, and applies the partitions of this shard again.
    private func applyAge() {
        let isBehind = dataAge.isBehind
        let stops = isBehind && stopsAtTokenLoss
        shard.metrics.olderData.set(isBehind ? 1 : 0)
        if stops != shard.isRedisBehind {
            shard.isRedisBehind = stops
            for intake in [events, chunks] { intake.block(.olderData, stops) }
            if !stops {
                lookup.readPostponed(evenIfEarly: true)
                shard.log.warning("Redis has its data again, or the loss was accepted: reading resumed")
            }
            shard.requestTurn()
        }
        if isBehind {
            askAcceptance()
            startReplay()
        } else {
            replay?.cancel()
            replay = nil
        }
    }

    // MARK: User state once more

    private func startReplay() {
        let starts = dataAge.starts(userState.settledPlaces.keys)
        // By a clock that is not known to be right, newer stored times would lie in the future, and give way to older ones.
        guard replay == nil, !starts.isEmpty, !events.isClosing, clockVerdict == .right || clockVerdict == .off else {
            return
        }
        let losses = dataAge.losses
        shard.log.info("user state is applied again", ["partitions": .int(starts.count)])
        let partitions = starts.keys.sorted()
        // It is called on the loop, and not after `shut`.
        nonisolated(unsafe) let pipeline = self
        let replay = replaySource.makeReplay(shard.loop) { pipeline.take($0, of: losses, partitions) }
        self.replay = replay
        userStates.didMakeAgain = { [unowned self] in self.replay?.goOn() }
        replay.start(from: starts)
    }

    private func take(_ step: StateReplayStep, of losses: [Int: StateStore.Loss], _ partitions: [Int32]) {
        switch step {
        case .records(let records): applyAgain(records)
        case .ended(let partitionCount):
            replay = nil
            for (server, loss) in losses.sorted(by: { $0.key < $1.key }) {
                try? shard.store.endReplay(
                    server: server, loss: loss.id, partitions: partitions, total: partitionCount,
                    tag: beatTag(.endReplay, server))
            }
            beat()
        case .failed(let why):
            // The next beat begins it again.
            replay = nil
            guard let suppressed = replayLines.admit(.failed, nowNanos: shard.nowNanos) else { return }
            shard.log.warning(
                "user state cannot be read again yet",
                ["why": .string(why), "suppressed": .int(Int(clamping: suppressed))])
        }
    }

    private func applyAgain(_ records: [StateReplayRecord]) {
        for record in records {
            // A bad record went to the dead-letter topic when it was read first.
            let latestMs = EventReader.latestMs(kafkaMs: record.kafkaMs, nowMs: shard.nowMs)
            let event = try? shard.reader.read(record.value, of: .userState, latestMs: latestMs)
            guard let event, case .userState(let state) = event.body, let app = app(event.app) else { continue }
            userStates.applyAgain(state, of: event, app: app)
            shard.metrics.replayed.add()
        }
        if !userStates.beginAgain() { replay?.goOn() }
    }
}
