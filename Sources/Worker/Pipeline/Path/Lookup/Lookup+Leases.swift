// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The leases of the gateways on which a candidate has connections.
extension Lookup {
    func readLeases(_ job: RecipientJob, _ candidate: Candidate) {
        let now = shard.nowNanos
        candidate.askedNanos = now
        var unknown: [String] = []
        for presence in candidate.recipient.presence
        where presence.state != .off && !unknown.containsSame(presence.gateway)
            && leases.answer(for: presence.gateway, nowNanos: now) == .unknown
        {
            unknown.append(presence.gateway)
        }
        guard !unknown.isEmpty else { return known.append(job) }
        // A candidate with devices elsewhere could be known sooner.
        keepPlace(job, at: .reading)
        candidate.phase = .readingLeases
        candidate.answers = Answers(unknown.count)
        for gateway in unknown { askLease(of: gateway, for: job) }
    }

    private func askLease(of gateway: String, for job: RecipientJob) {
        if let query = leaseQueryOf[UTF8Key(gateway)] {
            query.waiting.append(job.ref)
            return
        }
        let query = LeaseQuery(gateway: gateway)
        query.ref = leaseQueries.insert(query)
        query.waiting.append(job.ref)
        leaseQueryOf[UTF8Key(gateway)] = query
        do throws(RedisFault) {
            try shard.store.lease(gateway, tag: Tag(query.ref, .lease).bits)
        } catch {
            ended(query, failed: true)
        }
    }

    func didReadLease(_ ref: WorkRef, epoch: Int64?) {
        guard let query = leaseQueries.find(ref) else {
            return shard.mistake("an answer about a lease that nobody asked for")
        }
        leases.store(query.gateway, epoch: epoch, nowNanos: shard.nowNanos)
        ended(query, failed: false)
    }

    func didFailLease(_ ref: WorkRef, isAbsent: Bool) {
        guard let query = leaseQueries.find(ref) else {
            return shard.mistake("an answer about a lease that nobody asked for")
        }
        if isAbsent { leases.store(query.gateway, epoch: nil, nowNanos: shard.nowNanos) }
        ended(query, failed: !isAbsent)
    }

    private func ended(_ query: LeaseQuery, failed: Bool) {
        leaseQueries.remove(query.ref)
        leaseQueryOf[UTF8Key(query.gateway)] = nil
        for case let job? in query.waiting.map(work.recipient) where job.candidate?.phase == .readingLeases {
            answered(job, failed: failed)
        }
    }

    /// Without a lease or with another epoch, every presence on that gateway is void. Also voids connections without an
    /// ack.
    func voidPresence(of job: RecipientJob, _ candidate: Candidate) {
        leases.apply(to: &candidate.recipient, nowNanos: candidate.askedNanos)
        for suspect in job.silentConnections {
            for index in candidate.recipient.presence.indices
            where candidate.recipient.presence[index].device.isSame(as: suspect.device)
                && candidate.recipient.presence[index].connectionEpoch == suspect.connectionEpoch
            {
                candidate.recipient.presence[index].isSuspect = true
            }
        }
    }
}

/// A query for one gateway's lease and the recipients that wait for it.
final class LeaseQuery {
    let gateway: String
    var ref = WorkRef.none
    var waiting: [WorkRef] = []

    init(gateway: String) {
        self.gateway = gateway
    }
}
