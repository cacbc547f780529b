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
            device: record.device.map(MarkCounts.short) ?? 0)
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

    /// An earlier try of the same record finished the recipient. Unless that try was counted, its outcomes count when the
    /// record is settled.
    func countEarlier(of job: RecipientJob) {
        let event = job.event
        guard job.devices.isEmpty, event.counted.subject != nil else { return }
        job.counts.forEach { outcome in
            let credential = event.app.clients.first { MarkCounts.short($0.credential) == outcome.credential }
            let number = shard.statistics.number(ofCredential: credential?.credential)
            event.counted.tally.add(outcome.with(credential: number))
        }
    }

    func markNote(of job: RecipientJob) -> MarkNote? {
        job.event.counted.subject.map {
            MarkNote(counts: job.counts, record: job.event.recordName, subject: $0)
        }
    }
}

extension RecipientJob {
    /// An earlier try finished it: what its mark says counts only if it was a try of the same record.
    func takeEarlier(_ mark: MarkCounts?) {
        guard devices.isEmpty else { return }
        counts = mark.flatMap { event.counts($0) ? RecipientCounts($0) : nil } ?? RecipientCounts()
    }
}

extension EventJob {
    /// The name of its record in marks.
    fileprivate var recordName: UInt16 { parked?.place.name ?? origin?.place.name ?? 0 }

    /// Its record, or the one that it was parked from, made the mark.
    fileprivate func counts(_ mark: MarkCounts) -> Bool {
        if mark.record == recordName { return true }
        guard let record = parked?.record, record.facts.contains(.countsSource) else { return false }
        return mark.record == RecordPlace.name(.events, record.source.partition, record.source.offset)
    }

    fileprivate var pushKind: CountedOutcome.PushKind {
        if activity != nil { return .liveActivity }
        return lane == .urgent ? .voip : lane == .silent ? .background : .alert
    }
}
