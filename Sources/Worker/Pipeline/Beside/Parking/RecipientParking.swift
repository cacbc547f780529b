// SPDX-License-Identifier: Apache-2.0
import PushCore

/// A recipient's state in `carillon.parked`: its devices that wait to be parked, and the facts from the record that
/// returned it.
final class RecipientParking {
    /// Devices that are parked as soon as nothing else of the recipient is in progress.
    var waits: [Wait] = []
    /// Devices that the record lists as waiting; each has an end now, or parks again.
    var returned: [String] = []
    /// The end of the hold for a desktop, on the steady clock; nil: none is held.
    var holdUntilMs: Int64?
    /// What its event's record is to say, once nothing else of it is awaited.
    var parting: ParkedRecord?
    /// The outcomes in the record, until the first decision.
    var counts: [UInt8] = []

    struct Wait {
        var device: Int
        var cause: ParkCause
        /// On the shard's steady clock.
        var dueMs: Int64
        /// `AppContext.Client.name`; nil if the client has no problem.
        var client: String?
    }
}

extension RecipientJob {
    /// Continues from the record's state.
    func goOn(from record: ParkedRecord, steadyMs: Int64) {
        let parking = RecipientParking()
        parking.returned = record.devices
        parking.holdUntilMs = record.holdUntilMs
        parking.counts = record.counts
        self.parking = parking
        recorded = record.done
        flags.formUnion(record.facts.flags)
        if let until = record.holdUntilMs, until <= steadyMs { hold = .over }
        silentConnections = record.silentConnections.map {
            SilentConnection(device: $0.device, connectionEpoch: $0.epoch)
        }
        trace = TraceBytes(resuming: record.trace)
    }

    /// Whether it may be parked. A record that is too large for the topic, or was refused there, stays in memory.
    var mayPark: Bool { !flags.contains(.staysInMemory) && event.raw.count <= ParkedRecord.rawMax }
}
