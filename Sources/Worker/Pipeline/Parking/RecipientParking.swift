import PushCore

/// What a recipient has to do with `carillon.parked`: which of his devices wait to be parked, and what is known of him from
/// the record that brought him back.
final class RecipientParking {
    /// Devices that are parked as soon as nothing else of the recipient is in hand.
    var waits: [Wait] = []
    /// Devices that the record says to wait; each has an end by now, or parks again.
    var returned: [String] = []
    /// Devices that had their final record when the record was written.
    var done: [String] = []
    /// The end of the hold for a desktop, on the steady clock; nil: none is held.
    var holdUntilMs: Int64?

    struct Wait {
        var device: Int
        var cause: ParkCause
        /// On the shard's steady clock.
        var dueMs: Int64
        /// `AppContext.Client.name`; nil: not the client's trouble.
        var client: String?
    }
}

extension RecipientJob {
    /// Goes on where the record says that he was.
    func goOn(from record: ParkedRecord, steadyMs: Int64) {
        let parking = RecipientParking()
        parking.returned = record.devices
        parking.done = record.done
        parking.holdUntilMs = record.holdUntilMs
        self.parking = parking
        flags.formUnion(Flags(rawValue: record.flags).intersection(.keptWhileParked))
        if let until = record.holdUntilMs, until <= steadyMs { flags.insert(.holdOver) }
        suspects = record.suspects.map { Suspect(device: $0.device, connectionEpoch: $0.epoch) }
        trace = TraceBytes(resuming: record.trace)
    }

    /// Whether it may be put off; what is too large for the topic, or was refused there, stays in memory.
    var mayPark: Bool { !flags.contains(.staysInMemory) && event.raw.count <= ParkedRecord.rawMax }
}
