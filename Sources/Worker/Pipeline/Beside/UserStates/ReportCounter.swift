// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Telemetry

/// Counts the first report of a push and device: as opened or arrived, for the hour and the kind of its push; or as unchecked,
/// because its pid may not match its message.
struct ReportCounter {
    private let shard: ShardContext

    init(_ shard: ShardContext) { self.shard = shard }

    func count(_ job: ChangeJob, _ task: UserStateTask, _ outcome: StateOutcome) {
        switch (task.state.change, outcome) {
        case (.openReport(let report), .applied):
            job.app?.metrics.opens.add()
            if report.msgID == nil { job.app?.metrics.uncheckedOpens.add() }
            tally(job, task, .opened, isChecked: true)
        case (.openReport, .ignored(.unknownPush)):
            job.app?.metrics.opens.add()
            job.app?.metrics.uncheckedOpens.add()
            tally(job, task, .opened, isChecked: false)
        case (.arrivedReport, .applied):
            job.app?.metrics.arrivals.add()
            tally(job, task, .arrived, isChecked: true)
        case (.arrivedReport, .ignored(.unknownPush)): tally(job, task, .arrived, isChecked: false)
        default: break
        }
    }

    private func tally(_ job: ChangeJob, _ task: UserStateTask, _ kind: CountedOutcome.Kind, isChecked: Bool) {
        guard let app = job.app else { return }
        guard isChecked, let (counts, outcome) = task.reported else {
            job.counted.tally.add(CountedOutcome(hour: shard.nowMs / StatisticsKey.hourMs, kind, .alert, .direct))
            job.counted.subject = shard.statistics.subject(of: app, name: "", task: nil)
            return
        }
        job.counted.tally.add(
            counts.counted(outcome).reported(kind).with(
                credential: shard.statistics.number(ofCredential: outcome.credential, of: app)))
        job.counted.subject = shard.statistics.subject(of: app, counts)
    }
}
