// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Redis

/// The room of a shard for more work, and the reading that waits without it: the layer above the components with the bounds.
final class WorkRoom {
    private let shard: ShardContext
    private let work: WorkTable
    private let intakes: Intakes
    private let fanOut: FanOut
    private let sender: Sender
    private let parking: Parking
    private let userStates: UserStates

    init(
        _ shard: ShardContext, _ work: WorkTable, _ intakes: Intakes, fanOut: FanOut, sender: Sender,
        parking: Parking, userStates: UserStates
    ) {
        self.shard = shard
        self.work = work
        self.intakes = intakes
        self.fanOut = fanOut
        self.sender = sender
        self.parking = parking
        self.userStates = userStates
    }

    /// Room for more events: slots for recipients, few audiences waiting for them, and Redis and APNs keep up.
    ///
    /// Work that would only wait is better left in Kafka: it costs memory and leaves the processor's caches.
    var isThere: Bool {
        hasSlots && parking.hasRoom && !isRedisFull && sender.pushesAhead < shard.limits.pushesAheadMax
    }

    /// Without the commands of large groups' members, which hold nobody back: they start after all others.
    private var isRedisFull: Bool {
        let depth = shard.store.client.pipelineDepth
        let most = shard.limits.redisDepthMax
        return depth >= most && depth - PipelineLimits.commandsPerStep * fanOut.undecidedOfChunks >= most
    }

    var hasSlots: Bool {
        let limits = shard.limits
        return work.recipients.count < limits.recipientsMax - limits.pollBatch
            && fanOut.hasRoom && work.events.count < limits.recipientsMax - limits.pollBatch
    }

    /// User state waits only for Redis: waiting pushes do not hold it back.
    private var hasRoomForState: Bool {
        userStates.hasRoom && shard.store.client.pipelineDepth < shard.limits.redisDepthMax
    }

    /// Large groups leave half of every bound to other events, which are read at the same time.
    private var hasRoomForChunks: Bool {
        let limits = shard.limits
        return isThere && fanOut.hasRoomForChunks && work.recipients.count < limits.recipientsMax / 2
            && sender.pushesAhead < limits.pushesAheadMax / 2
            && shard.store.client.pipelineDepth < limits.redisDepthMax / 2
    }

    func isThere(for intake: Intake) -> Bool {
        if intake === intakes.userState { return hasRoomForState }
        return intake === intakes.events ? isThere : hasRoomForChunks
    }

    /// Room for recipients: slots, and Redis keeps up.
    var forRecipients: FanOut.Room {
        let limits = shard.limits
        let depth = limits.redisDepthOfStarts - shard.store.client.pipelineDepth
        let slots = limits.recipientsMax - work.recipients.count
        let perStep = PipelineLimits.commandsPerStep
        return FanOut.Room(
            isAPNsFree: sender.pushesAhead < limits.pushesAheadMax / 2,
            recipients: min(slots, (max(0, depth) + perStep - 1) / perStep),
            ofChunks: max(0, min(limits.recipientsMax / 2 - work.recipients.count, fanOut.bulkRoom)))
    }

    func pollIfReady() {
        for intake in intakes.all where intake.isHeld { intake.pollIfReady(hasRoom: isThere(for: intake)) }
    }

    /// Changes must wait for Redis to accept writes; once many wait, their topic is paused.
    func holdStateIfRefused() {
        if work.recipients.count == 0, userStates.count == 0 { shard.writes.forgetIfOld(nowNanos: shard.nowNanos) }
        let isMuch = userStates.count >= shard.limits.changesMax / 2
        if shard.writes.refusal == nil {
            intakes.userState.block(.redisRefusesWrites, false)
        } else if isMuch {
            intakes.userState.block(.redisRefusesWrites, true)
        }
    }
}
