// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Telemetry

/// Rebalances and the end: the intakes' events, and hand-back.
extension Pipeline: IntakeOwner {
    func intakeIsReadable(_ intake: Intake) {
        shard.enter(.read)
        intake.poll(hasRoom: hasRoom(intake))
    }

    func intake(_ intake: Intake, handBack partitions: Set<TopicPartition>, isLost: Bool) {
        parking.handBack(of: intake, partitions.contains)
        handBack(
            { self.intake(of: $0) === intake && $0.isOf(partitions) }, changes: { $0.isOf(intake, partitions) })
    }

    func intake(_ intake: Intake, hasWorkOf partitions: Set<TopicPartition>) -> Bool {
        if parking.hasWork(of: partitions, intake) { return true }
        if intake === userState, userStates.count > 0 { return true }
        if badgeUpdates.hasWork(where: { $0.isOf(intake, partitions) }) { return true }
        if hasUncounted(intake, partitions) { return true }
        return work.events.contains { self.intake(of: $0) === intake && $0.isOf(partitions) }
    }

    /// Binds and reads that were in the topic are applied before events of the same backlog are read.
    func intakeDidAssign(_ intake: Intake) {
        lookAtStatistics()
        if intake === userState { stateWatch.restart() }
        if intake !== userState, !intake.consumer.assignment.isEmpty {
            stateFirstNanos = shard.nowNanos
            for intake in [events, chunks] { intake.block(.stateFirst, true) }
        }
        shard.metrics.assignedPartitions.set(assignedCount)
        noteShare(of: intake)
    }

    /// The ends that were noted belong to the earlier epoch.
    func intakeDidRestart(_ intake: Intake) {
        if intake === userState { stateWatch.restart() }
    }

    func intakeDidCommit(_ intake: Intake) { owner?.pipelineDidCommit() }

    func intakeDidLearnCommitted(_ intake: Intake) {
        if intake === userState { dataAge.compareCommitted() }
    }

    func intakeDidClose(_ intake: Intake) {
        if intakes.allSatisfy(\.consumer.isClosed) { owner?.pipelineDidClose() }
    }

    func intakeDidMeetFatalError(_ intake: Intake) { owner?.pipelineDidMeetFatalError(.kafka) }

    /// This process's share of everything that causes pushes: user state too, because its reads may send a number
    /// alone.
    func noteShare(of intake: Intake) {
        intake.noteShare(of: intakes.flatMap(\.consumer.topics))
    }

    /// Hands back everything of these events that is not in flight; their offsets remain.
    func handBack(_ isGoing: (EventJob) -> Bool, changes isGoingChange: (ChangeJob) -> Bool) {
        work.events.forEach { if isGoing($0) { $0.parked?.isHandedBack = true } }
        fanOut.handBack(isGoing)
        for device in sender.withdraw({ work.recipient($0).map { isGoing($0.event) } ?? false }) {
            dispatcher.withdrew(device)
        }
        work.recipients.forEach { job in
            if isGoing(job.event) { dispatcher.handBack(job) }
        }
        badgeUpdates.handBack(isGoing, changes: isGoingChange)
        work.events.forEach { event in
            if isGoing(event) { recorder.flushDeliveries(of: event, evenIfUndecided: true) }
        }
        shard.requestTurn()
    }
}
