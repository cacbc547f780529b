// SPDX-License-Identifier: Apache-2.0
/// The state of one recipient of one event, from the first read to the mark.
///
/// A plain value: an event in, a step out; no clock, no server. `ended` is a phase, and every later event is ignored:
/// each recipient ends once, whatever the order of answers, faults, hand-backs and ends.
struct RecipientMachine: Equatable {
    enum Phase: Equatable {
        /// The recipient is being read, decided and claimed (`Candidate.Phase`). Goes to `open`.
        case deciding(Candidate)
        /// Decided: devices, records or deliveries are open. Goes to `deciding` for another round, to `readingAcks`, to `marking`,
        /// to `leaving`, or to `ended` if no mark may be written.
        case open
        /// Redis is asked for acks. Goes to `open`, or to `deciding` for another round.
        case readingAcks
        /// Everything is recorded; the mark is being written. Goes to `ended`.
        case marking(Answers)
        /// All its open devices go to the topic with this record, once the broker has its other records. Goes to `ended`.
        indirect case leaving(ParkedRecord)
        /// The end.
        case ended
    }

    private(set) var phase: Phase
    /// Devices that have not ended.
    private(set) var openDevices: Int32 = 0
    /// Records without the broker's acknowledgement.
    private(set) var unackedRecords: Int32 = 0
    /// False if no mark may be written: nothing was done, another try has marked or will mark it, or the rest is left to the topic or
    /// to another owner.
    private(set) var isMarked = true

    init(_ candidate: Candidate) { phase = .deciding(candidate) }

    /// The present round of its decision; nil if none is in progress.
    var candidate: Candidate? { if case .deciding(let candidate) = phase { candidate } else { nil } }

    var isOpen: Bool { if case .open = phase { true } else { false } }
    var waitsForTwin: Bool { candidate?.phase == .waitingForTwin }
    var readsAcks: Bool { if case .readingAcks = phase { true } else { false } }
    var isMarking: Bool { if case .marking = phase { true } else { false } }
    var hasEnded: Bool { if case .ended = phase { true } else { false } }

    /// The next action.
    enum Step: Equatable {
        case nothing
        /// The broker does not have its event's deliveries yet; ask again then.
        case awaitDeliveries
        /// Write the mark.
        case mark
        /// The record may be written to the topic; here it has ended.
        indirect case leave(ParkedRecord)
        /// It has ended.
        case end
    }

    // MARK: Rounds of the decision

    /// Another round begins: a missing ack, an ended hold, or a changed token. Returns false if it cannot begin now.
    ///
    /// - Parameter fresh: its candidate, unless the present round is not decided yet.
    mutating func decideAgain(_ fresh: @autoclosure () -> Candidate) -> Bool {
        switch phase {
        case .deciding: break
        case .open, .readingAcks: phase = .deciding(fresh())
        case .marking, .leaving, .ended: return false
        }
        return true
    }

    /// The decision was made, or the recipient is parked without one; the candidate goes. Returns false if it is no longer awaited.
    mutating func decided() -> Bool {
        guard case .deciding = phase else { return false }
        phase = .open
        return true
    }

    /// - Returns: false if another step is in progress; ask again later.
    mutating func readAcks() -> Bool {
        guard isOpen else { return false }
        phase = .readingAcks
        return true
    }

    mutating func didReadAcks() -> Bool {
        guard readsAcks else { return false }
        phase = .open
        return true
    }

    // MARK: Open work

    mutating func opened(devices: Int) { openDevices += Int32(truncatingIfNeeded: devices) }

    mutating func deviceEnded() { openDevices -= 1 }

    mutating func recordSent() { unackedRecords += 1 }

    /// - Returns: true if it was the last awaited record.
    mutating func recordAcknowledged() -> Bool {
        guard unackedRecords > 0 else { return false }
        unackedRecords -= 1
        return unackedRecords == 0
    }

    /// The rest of it goes to the topic with this record. Returns false if another step is in progress.
    mutating func leave(with record: ParkedRecord) -> Bool {
        guard isOpen else { return false }
        phase = .leaving(record)
        isMarked = false
        return true
    }

    /// The record of a recipient that goes to the topic; nil if it does not.
    var leaving: ParkedRecord? { if case .leaving(let record) = phase { record } else { nil } }

    /// No mark will be written: nothing was done, another try has marked or will mark it, or the rest is left.
    mutating func leaveUnmarked() { isMarked = false }

    /// Its partition goes to another owner. Work that is not in flight is left to that owner; work in flight ends here.
    ///
    /// - Returns: whether a step was given up.
    mutating func handBack() -> Bool {
        switch phase {
        case .deciding, .readingAcks:
            isMarked = false
            phase = .open
            return true
        case .open, .marking, .leaving, .ended: return false
        }
    }

    // MARK: The end

    /// Whether all its devices have ended, so that only records are awaited.
    var awaitsRecordsOnly: Bool { isOpen && openDevices == 0 && unackedRecords > 0 }

    /// Ask whenever a part of it ended.
    ///
    /// - Parameter areDeliveriesSettled: of its event, if it has a delivery.
    mutating func next(areDeliveriesSettled: Bool) -> Step {
        guard openDevices == 0, unackedRecords == 0 else { return .nothing }
        switch phase {
        case .open:
            guard areDeliveriesSettled else { return .awaitDeliveries }
            phase = isMarked ? .marking(Answers()) : .ended
            return isMarked ? .mark : .end
        case .leaving(let record):
            guard areDeliveriesSettled else { return .awaitDeliveries }
            phase = .ended
            return .leave(record)
        case .deciding, .readingAcks, .marking, .ended: return .nothing
        }
    }

    /// The writes of its mark are sent, for the first time or again.
    mutating func beginMarking(writes: Int) {
        if isMarking { phase = .marking(Answers(writes)) }
    }

    /// - Returns: with the last answer, whether all writes succeeded; nil while others are awaited.
    mutating func didWrite(failed: Bool) -> Bool? {
        guard case .marking(var answers) = phase else { return nil }
        let isLast = answers.take(failed: failed)
        phase = .marking(answers)
        return isLast ? !answers.hasFailed : nil
    }

    /// The mark is written, or cannot be. Returns false if it had ended before.
    mutating func didMark() -> Bool {
        guard isMarking else { return false }
        phase = .ended
        return true
    }
}

extension RecipientMachine.Phase {
    /// For the log.
    var name: String {
        switch self {
        case .deciding: "deciding"
        case .open: "open"
        case .readingAcks: "readingAcks"
        case .marking: "marking"
        case .leaving: "leaving"
        case .ended: "ended"
        }
    }
}

extension Candidate: Equatable {
    static func == (one: Candidate, other: Candidate) -> Bool { one === other }
}
