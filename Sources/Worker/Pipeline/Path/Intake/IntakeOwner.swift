// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Receives an intake's rebalances and faults.
protocol IntakeOwner: AnyObject {
    func intakeIsReadable(_ intake: Intake)
    /// These partitions go to another owner: give up everything that is not in flight now.
    func intake(_ intake: Intake, handBack partitions: Set<TopicPartition>, isLost: Bool)
    /// - Returns: whether something of these partitions is still in flight.
    func intake(_ intake: Intake, hasWorkOf partitions: Set<TopicPartition>) -> Bool
    func intakeDidAssign(_ intake: Intake)
    /// A partition began again at a lower offset.
    func intakeDidRestart(_ intake: Intake)
    func intakeDidCommit(_ intake: Intake)
    /// The committed offsets of new partitions are known.
    func intakeDidLearnCommitted(_ intake: Intake)
    func intakeDidClose(_ intake: Intake)
    func intakeDidMeetFatalError(_ intake: Intake)
}
