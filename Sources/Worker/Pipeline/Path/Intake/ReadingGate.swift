// SPDX-License-Identifier: Apache-2.0
/// Decides when records are taken from Kafka: not while a bound is reached, and never silent for so long that the group
/// would remove this member.
///
/// A short stall only leaves records in librdkafka's queue. After `patienceNanos` the partitions are paused, so that
/// polling (which keeps the membership) continues without records.
struct ReadingGate {
    static let tickNanos: UInt64 = 1_000_000_000
    static let patienceNanos: UInt64 = 10_000_000_000

    private(set) var isStalled = false
    private(set) var isPaused = false
    private var stalledSince: UInt64 = 0

    /// Reading has stopped for lack of room.
    var isHeld: Bool { isStalled || isPaused }

    enum Action: Equatable { case none, poll, pauseAndPoll, resumeAndPoll }

    /// The pipeline asks before each poll.
    mutating func admitRecords(hasRoom: Bool, nowNanos: UInt64) -> Bool {
        if hasRoom || isPaused { return true }
        if !isStalled {
            isStalled = true
            stalledSince = nowNanos
        }
        return false
    }

    /// Work ended; there may be room again.
    mutating func roomFreed(hasRoom: Bool) -> Action {
        guard hasRoom, isStalled || isPaused else { return .none }
        let wasPaused = isPaused
        isStalled = false
        isPaused = false
        return wasPaused ? .resumeAndPoll : .poll
    }

    /// Once a second.
    mutating func tick(hasRoom: Bool, nowNanos: UInt64) -> Action {
        if isPaused { return hasRoom ? roomFreed(hasRoom: true) : .poll }
        guard isStalled else { return .poll }
        if hasRoom { return roomFreed(hasRoom: true) }
        guard nowNanos &- stalledSince >= Self.patienceNanos else { return .none }
        isPaused = true
        return .pauseAndPoll
    }
}
