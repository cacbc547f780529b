// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The outcomes for the statistics: with the event until its record is settled, and in the recipient's mark.
extension Recorder {
    func count(_ record: borrowing OutcomeRecord, of job: RecipientJob) {
        let event = job.event
        guard event.counted.subject != nil, let kind = CountedOutcome.Kind(record.verdict) else { return }
        let outcome = outcome(record, kind, event.pushKind, event.lane)
        event.counted.tally.add(outcome)
        job.counts.add(
            outcome, credential: shard.statistics.short(ofCredential: outcome.credential),
            device: record.device.map(MarkCounts.short) ?? 0,
            isAddedByClient: kind == .accepted && job.isAddedByClient)
    }

    /// The outcome of a badge update, which no record of the events topic has: it counts at once.
    func countBadge(_ record: borrowing OutcomeRecord, of app: AppContext) {
        guard let kind = CountedOutcome.Kind(record.verdict) else { return }
        var counted = RecordCounts(subject: shard.statistics.subject(of: app, name: "badge", task: nil))
        counted.tally.add(outcome(record, kind, .badge, .silent))
        shard.statistics.settled(counted, at: .none)
    }

    private func outcome(
        _ record: borrowing OutcomeRecord, _ kind: CountedOutcome.Kind, _ push: CountedOutcome.PushKind,
        _ lane: PushLane
    ) -> CountedOutcome {
        CountedOutcome(
            hour: shard.nowMs / StatisticsKey.hourMs, kind, push, lane, reason: CountedReason.code(record.label),
            credential: shard.statistics.number(ofCredential: record.credential),
            isSent: record.attempts > 0 || kind == .accepted)
    }

    /// Another try of the same record finished the recipient. Unless that try was counted, its outcomes count when the record is
    /// settled, besides those of the devices that end here.
    func countEarlier(of job: RecipientJob) {
        let event = job.event
        if event.counted.subject == nil { return }
        let open = job.devices.lazy.filter(\.isOpen).map { MarkCounts.short($0.route.device) }
        job.counts.forEachEarlier(besides: open) { event.counted.tally.add(numbered($0, of: event.app)) }
    }

    /// The device ended elsewhere, with this outcome (`RecipientJob.outcome`).
    func countEarlier(_ outcome: CountedOutcome, of job: RecipientJob, _ index: Int) {
        if job.event.counted.subject == nil { return }
        job.event.counted.tally.add(numbered(outcome, of: job.event.app))
        job.counts.add(
            outcome, credential: outcome.credential, device: MarkCounts.short(job.devices[index].route.device))
    }

    /// With the credential set's number in place of its short name.
    private func numbered(_ outcome: CountedOutcome, of app: AppContext) -> CountedOutcome {
        let credential = app.clients.first { MarkCounts.short($0.credential) == outcome.credential }
        return outcome.with(credential: shard.statistics.number(ofCredential: credential?.credential))
    }

    // MARK: Parked recipients

    /// Takes the recipient's outcomes out of the event's: they count with its record of `carillon.parked`, because another try of
    /// the event finds the recipient finished by that one.
    func takeCounts(of job: RecipientJob) -> [UInt8] {
        guard let parking = job.parking, parking.counts.isEmpty, let subject = job.event.counted.subject else {
            return job.parking?.counts ?? []
        }
        job.counts.forEach { job.event.counted.tally.remove($0) }
        job.counts.withBytes(record: 0, subject) { parking.counts = Array($0) }
        job.counts = RecipientCounts()
        return parking.counts
    }

    /// The outcomes in the parked record of the recipient count with this event from now on.
    func countReturned(_ job: RecipientJob) {
        guard let parking = job.parking, !parking.counts.isEmpty else { return }
        let mark = parking.counts.withUnsafeBytes { bytes in
            var rest = bytes[...]
            return MarkCounts.take(&rest)
        }
        parking.counts = []
        guard let mark, job.event.counted.subject != nil else { return }
        job.counts = RecipientCounts(mark)
        job.counts.forEach { job.event.counted.tally.add(numbered($0, of: job.event.app)) }
    }

    func markNote(of job: RecipientJob) -> MarkNote? {
        job.event.counted.subject.map {
            MarkNote(counts: job.counts, record: job.event.recordName, subject: $0)
        }
    }
}

extension RecipientJob {
    /// Another try finished it: what its mark says counts only if it was a try of the same record.
    func takeEarlier(_ mark: MarkCounts?) {
        counts.takeEarlier(mark.flatMap { event.counts($0) ? $0 : nil })
    }

    /// The outcome of the device in the mark of another worker, if that worker had the same record. It has the short name of the
    /// credential in place of its number.
    func outcome(ofDevice index: Int, in mark: MarkCounts?) -> CountedOutcome? {
        guard let mark, event.counts(mark) else { return nil }
        let device = MarkCounts.short(devices[index].route.device)
        return mark.outcomes.first { $0.device == device }.map { mark.counted($0).with(credential: $0.credential) }
    }
}

extension EventJob {
    /// The name of its record in marks.
    fileprivate var recordName: UInt16 { parked?.place.name ?? origin?.place.name ?? 0 }

    /// Its record, or the one that it was parked from, made the mark.
    fileprivate func counts(_ mark: MarkCounts) -> Bool {
        if mark.record == recordName { return true }
        guard let record = parked?.record else { return false }
        if record.formerNames.contains(mark.record) { return true }
        return record.facts.contains(.countsSource)
            && mark.record == RecordPlace.name(.events, record.source.partition, record.source.offset)
    }

    fileprivate var pushKind: CountedOutcome.PushKind {
        if activity != nil { return .liveActivity }
        return lane == .urgent ? .voip : lane == .silent ? .background : .alert
    }
}
