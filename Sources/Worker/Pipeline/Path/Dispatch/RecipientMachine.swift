// SPDX-License-Identifier: Apache-2.0
/// The state of one recipient of one event, from the first read to the mark.
///
/// A plain value: an event in, a step out; no clock, no server. `ended` is a phase, and every later event is ignored:
/// each recipient ends once, whatever the order of answers, faults, hand-backs and ends.
struct RecipientMachine: Equatable {
    enum Phase: Equatable {
        /// A candidate is being read, decided and claimed.
        case deciding
        /// The same dedup key is in progress for an earlier delivery of the event; waits for its end.
        case waitingForTwin
        /// Decided: devices, records or deliveries are open.
        case open
        /// Redis is asked for acks.
        case readingAcks
        /// Everything is recorded; the mark is being written.
        case marking
        case ended
    }

    private(set) var phase = Phase.deciding
    /// Devices that have not ended.
    private(set) var openDevices: Int32 = 0
    /// Records without the broker's acknowledgement.
    private(set) var unackedRecords: Int32 = 0
    /// False if no mark may be written, because nothing was done or the rest is left to another owner.
    private(set) var isMarked = true

    var hasEnded: Bool { phase == .ended }

    /// The next action.
    enum Step: Equatable {
        case nothing
        /// The broker does not have its event's deliveries yet; ask again then.
        case awaitDeliveries
        /// Write the mark.
        case mark
        /// It has ended.
        case end
    }

    // MARK: Rounds of the decision

    /// Another round begins: a missing ack, an ended hold, or a changed token. Returns false if it cannot begin now.
    mutating func decideAgain() -> Bool {
        guard phase == .open || phase == .readingAcks || phase == .deciding || phase == .waitingForTwin else {
            return false
        }
        phase = .deciding
        return true
    }

    /// - Returns: false if it has ended or left the decision.
    mutating func waitForTwin() -> Bool {
        guard phase == .deciding else { return false }
        phase = .waitingForTwin
        return true
    }

    /// The decision was made. Returns false if it is no longer awaited.
    mutating func decided() -> Bool {
        guard phase == .deciding else { return false }
        phase = .open
        return true
    }

    /// - Returns: false if another step is in progress; ask again later.
    mutating func readAcks() -> Bool {
        guard phase == .open else { return false }
        phase = .readingAcks
        return true
    }

    mutating func didReadAcks() -> Bool {
        guard phase == .readingAcks else { return false }
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

    /// No mark will be written: another marks the work, or nothing was done.
    mutating func leaveUnmarked() { isMarked = false }

    /// It was to be parked and stays here after all: its end is marked.
    mutating func unpark() { if !hasEnded { isMarked = true } }

    /// Its partition goes to another owner. Work that is not in flight is left to that owner; work in flight ends here.
    mutating func handBack() {
        switch phase {
        case .deciding, .waitingForTwin, .readingAcks:
            isMarked = false
            phase = .open
        case .open, .marking, .ended: break
        }
    }

    // MARK: The end

    /// All its devices have ended, so that only records are awaited.
    var awaitsRecordsOnly: Bool { phase == .open && openDevices == 0 && unackedRecords > 0 }

    /// Ask whenever a part of it ended.
    ///
    /// - Parameter areDeliveriesSettled: of its event, if it has a delivery.
    mutating func next(areDeliveriesSettled: Bool) -> Step {
        guard phase == .open, openDevices == 0, unackedRecords == 0 else { return .nothing }
        guard areDeliveriesSettled else { return .awaitDeliveries }
        phase = isMarked ? .marking : .ended
        return isMarked ? .mark : .end
    }

    /// The mark is written, or cannot be. Returns false if it had ended before.
    mutating func didMark() -> Bool {
        guard phase == .marking else { return false }
        phase = .ended
        return true
    }
}
