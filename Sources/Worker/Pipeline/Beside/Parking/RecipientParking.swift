// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// A recipient's devices that wait to be parked as soon as nothing else of it is in progress, and the content of the record that
/// returned it.
final class RecipientParking {
    /// Devices that are parked as soon as nothing else of the recipient is in progress.
    var waits: [Wait] = []
    /// Devices that the record lists as waiting; each has an end now, or parks again.
    var returned: [String] = []
    /// The end of the hold for a desktop, on the steady clock; nil: none is held.
    var holdUntilMs: Int64?

    struct Wait {
        /// Index in `RecipientJob.devices`; -1: the whole recipient, without a route (`RecipientEnds.parkWhole`).
        let device: Int
        let cause: ParkCause
        /// On the shard's steady clock.
        let dueMs: Int64
        /// `AppContext.Client.name`; nil if the client has no problem.
        let client: String?
    }
}

extension RecipientJob {
    /// Continues from the record's state.
    func goOn(from record: ParkedRecord, steadyMs: Int64) {
        let parking = RecipientParking()
        parking.returned = record.devices
        parking.holdUntilMs = record.holdUntilMs
        self.parking = parking
        journal = record.journal
        flags.formUnion(record.facts.flags)
        openMark = record.facts.openMark
        if let until = record.holdUntilMs, until <= steadyMs { hold = .over }
        silentConnections = record.silentConnections
    }

    /// Whether it may be parked. A record that is too large for the topic, or was refused there, stays in memory.
    var mayPark: Bool { !flags.contains(.staysInMemory) && event.raw.count <= ParkedRecord.rawMax }
}

extension ParkedRecord {
    /// The record of the open part of a recipient.
    init(of job: RecipientJob, _ waits: [RecipientParking.Wait], steadyMs: Int64) {
        let event = job.event
        let first = waits.min { $0.dueMs < $1.dueMs }
        self.init(
            ParkedEvent(event), uid: job.uid, cause: first?.cause ?? .behind, dueMs: first?.dueMs ?? steadyMs,
            writtenMs: steadyMs)
        client = first?.client
        devices = waits.flatMap { wait in
            wait.device < 0 ? job.parking?.returned ?? [] : [job.devices[wait.device].route.device]
        }
        journal = job.journal
        holdUntilMs = job.parking?.holdUntilMs
        later = event.parked?.record.later ?? []
        facts = ParkedFacts(of: job.flags, job.openMark)
        if let parked = event.parked {
            facts.formUnion(parked.record.facts.intersection(.countsSource))
            formerNames = parked.record.formerNames
        } else if job.devices.isEmpty, let place = event.origin?.place {
            facts.formUnion(place.parkedFacts)
        }
        silentConnections = job.silentConnections
        // The acks are due when the record is: then the connection counts as silent.
        for wait in waits where wait.cause == .unclaimed && wait.device >= 0 {
            guard let target = job.devices[wait.device].connection else { continue }
            silentConnections.append(SilentConnection(device: target.device, epoch: target.epoch))
        }
    }
}

extension ParkedEvent {
    fileprivate init(_ event: EventJob) {
        self.init(
            app: event.app.id, id: event.subject.kind.rawValue + event.subject.id, raw: event.raw,
            source: event.origin?.source ?? EventSource(), conversation: event.parkedConversation,
            part: event.parkedPart,
            chunkName: event.chunkPart == nil ? event.parked?.record.event.chunkName : event.origin?.place.name,
            expiresAtMs: event.expiresAtMs)
    }
}
