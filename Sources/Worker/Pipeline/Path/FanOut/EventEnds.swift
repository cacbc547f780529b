// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore

/// The ends of events: the last open part of one settles its record. A layer above `Intakes`, `Parking` and `Digests`.
final class EventEnds {
    private let shard: ShardContext
    private let work: WorkTable
    private let intakes: Intakes
    private let parking: Parking
    private let digests: Digests

    init(_ shard: ShardContext, _ work: WorkTable, _ intakes: Intakes, parking: Parking, digests: Digests) {
        self.shard = shard
        self.work = work
        self.intakes = intakes
        self.parking = parking
        self.digests = digests
    }

    /// A recipient has ended, or waits in a record from now on. The line of a returned record with one recipient goes on, though
    /// the event may be kept for a badge update: that may wait for later work of the line.
    func recipientEnded(of event: EventJob) {
        guard let parked = event.parked, parked.record.uid != nil else { return }
        // Work that owes a claim may go into a record of its own, and be in the line again only then.
        if event.parting.contains(where: { $0.facts.contains(.owesClaim) }) { return }
        takeParting(of: event)
        parking.recipientEnded(parked)
    }

    /// The event has one open part less. The last one settles its offset, unless it was handed back.
    func release(_ event: EventJob) {
        if event.openParts == 1, takeParting(of: event) == .kept { return parking.wait(event) }
        if !work.release(event) { return }
        let counted = event.takeCounts()
        if let parked = event.parked {
            if event.staysUnsettled {
                parking.drop(parked)
            } else {
                parked.batch.counted.add(counted)
                parking.end(parked)
            }
            return intakes.userState.mayEndRevocation()
        }
        let intake = intakes.of(event)
        if let origin = event.origin, !event.staysUnsettled {
            intake.settle(origin.place, counted, origin.partition.partition)
        } else if event.origin == nil, !event.staysUnsettled {
            shard.statistics.settled(counted, at: .none)
        }
        if let digest = event.digest, !event.staysUnsettled { digests.end(digest) }
        intake.mayEndRevocation()
    }

    /// Recipients that wait to be parked leave memory. Their records are open parts of the event.
    ///
    /// - Returns: `.kept` if an earlier event of the conversation comes first.
    @discardableResult
    func takeParting(of event: EventJob) -> Passage {
        if event.parting.isEmpty { return .goesOn }
        if event.parked == nil, !event.staysUnsettled, parking.isBehindEarlier(event) { return .kept }
        var open: [ParkedRecord] = []
        swap(&open, &event.parting)
        // The event may have gone to another owner after they began to wait.
        if event.parked?.partitionGoes ?? false { event.staysUnsettled = true }
        if event.staysUnsettled {
            parking.forget(open)
        } else if let parked = event.parked {
            parking.goOn(parked, open)
        } else {
            parking.park(event, open)
        }
        return .goesOn
    }
}
