/// Where one recipient of one event stands, from the first read to the mark that says that all is done.
///
/// A plain value: an event in, a step out; no clock, no server. `ended` is a phase, and whatever comes after it is
/// ignored: each recipient ends once, whatever the order of answers, faults, hand-backs and ends.
struct RecipientMachine: Equatable {
    enum Phase: Equatable {
        /// A candidate is read, decided about and claimed.
        case deciding
        /// The same dedup key is in work for an earlier delivery of the event; its end is waited for.
        case waitingForTwin
        /// Decided: devices, records or deliveries are open.
        case open
        /// Redis is asked who acknowledged.
        case readingAcks
        /// All is recorded; the finished mark is on its way.
        case marking
        case ended
    }

    private(set) var phase = Phase.deciding
    /// Devices without an end.
    private(set) var openDevices: Int32 = 0
    /// Records that the broker has not acknowledged.
    private(set) var unackedRecords: Int32 = 0
    /// False: no mark is to say that it is finished, since nothing was done or the rest is left to another.
    private(set) var isMarked = true

    var hasEnded: Bool { phase == .ended }

    /// What is to be done now.
    enum Step: Equatable {
        case nothing
        /// The deliveries of its event are with the broker only later; then it is asked again.
        case awaitDeliveries
        /// Write the finished mark.
        case mark
        /// It has ended: nothing of it is left.
        case end
    }

    // MARK: Rounds of the decision

    /// Another round begins: an ack is missing, a hold is over, or a token changed. False: not now.
    mutating func decideAgain() -> Bool {
        guard phase == .open || phase == .readingAcks || phase == .deciding || phase == .waitingForTwin else {
            return false
        }
        phase = .deciding
        return true
    }

    /// False: it has ended or left the decision meanwhile.
    mutating func waitForTwin() -> Bool {
        guard phase == .deciding else { return false }
        phase = .waitingForTwin
        return true
    }

    /// The decision was taken. False: nobody waits for it any more.
    mutating func decided() -> Bool {
        guard phase == .deciding else { return false }
        phase = .open
        return true
    }

    /// False: another step is under way; ask again later.
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

    // MARK: What is open

    mutating func opened(devices: Int) { openDevices += Int32(truncatingIfNeeded: devices) }

    mutating func deviceEnded() { openDevices -= 1 }

    mutating func recordSent() { unackedRecords += 1 }

    /// True: it was the last one that was waited for.
    mutating func recordAcknowledged() -> Bool {
        guard unackedRecords > 0 else { return false }
        unackedRecords -= 1
        return unackedRecords == 0
    }

    /// No mark will be written: what is done is marked by another, or nothing was done.
    mutating func leaveUnmarked() { isMarked = false }

    /// It was to be parked and stays here after all: its end is marked.
    mutating func unpark() { if !hasEnded { isMarked = true } }

    /// Its partition goes to another owner: what is not out is left to that one. What is out ends here.
    mutating func handBack() {
        switch phase {
        case .deciding, .waitingForTwin, .readingAcks:
            isMarked = false
            phase = .open
        case .open, .marking, .ended: break
        }
    }

    // MARK: The end

    /// All its devices have ended, so that only records are waited for.
    var awaitsRecordsOnly: Bool { phase == .open && openDevices == 0 && unackedRecords > 0 }

    /// To be asked whenever something of it ended.
    ///
    /// - Parameter areDeliveriesSettled: of its event, where it has a delivery.
    mutating func next(areDeliveriesSettled: Bool) -> Step {
        guard phase == .open, openDevices == 0, unackedRecords == 0 else { return .nothing }
        guard areDeliveriesSettled else { return .awaitDeliveries }
        phase = isMarked ? .marking : .ended
        return isMarked ? .mark : .end
    }

    /// The mark is written, or cannot be. False: it had ended before.
    mutating func didMark() -> Bool {
        guard phase == .marking else { return false }
        phase = .ended
        return true
    }
}
