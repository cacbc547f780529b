// SPDX-License-Identifier: Apache-2.0
/// The result in one sentence, the same on the terminal and on the page.
public enum ReplayVerdict {
    public static func sentence(_ report: ReplayReport) -> String {
        var parts: [String] = []
        if report.isStopped { parts.append("stopped before its end") }
        if !report.isFlushed { parts.append("the brokers did not confirm everything within 30 s") }
        if report.failedCount > 0 { parts.append("\(report.failedCount) records were not written") }
        guard let worker = report.worker else {
            if parts.isEmpty { parts.append("everything is written") }
            return sentence(parts + [report.unwatched])
        }
        if !worker.isSettled { parts.append("\(worker.wanted - worker.settled) records are not settled") }
        if worker.lost > 0 { parts.append("\(worker.lost) recipients are lost") }
        if worker.duplicates > 0 { parts.append("\(worker.duplicates) pushes were accepted twice") }
        if worker.contradictions > 0 { parts.append("\(worker.contradictions) recipients have two verdicts") }
        if worker.uninvited > 0 { parts.append("\(worker.uninvited) users got messages that were not for them") }
        if parts.isEmpty {
            parts.append(
                worker.wanted > 0
                    ? "everything is settled, nothing is lost, nothing is doubled" : "everything is written")
        }
        if worker.areAllRepeats {
            parts.append("all recipients are repeats: they had ended before (--fresh-ids makes them new)")
        } else if worker.repeats + worker.repeatedInFile > 0 {
            parts.append("\(worker.repeats + worker.repeatedInFile) recipients are repeats")
        }
        if worker.deleted > 0 {
            parts.append(
                "the brokers deleted \(worker.deleted) records before they were settled: keep them for longer than the "
                    + "worker lags (retention.bytes, retention.ms), or replay at a --rate that it keeps up with")
        }
        if worker.open > 0 { parts.append("\(worker.open) recipients are still in progress") }
        if worker.unknown > 0 { parts.append("\(worker.unknown) recipients are unknown: \(worker.unknownWhy)") }
        return sentence(parts)
    }

    private static func sentence(_ parts: [String]) -> String {
        parts.filter { !$0.isEmpty }.joined(separator: "; ")
    }
}
