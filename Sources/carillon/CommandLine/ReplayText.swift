// SPDX-License-Identifier: Apache-2.0
import Console
import Recording

/// The report of a replay for people.
enum ReplayText {
    static func people(_ report: ReplayReport) -> TerminalText {
        var text: TerminalText =
            "\(Style.bold("\(counted(report.writtenCount, "record"))")) in \(seconds(report.writingSeconds)), "
        text += "\(ProgressBar.number(report.rate))/s, \(report.failedCount) failed"
        text += report.passes > 1 ? ", \(report.passes) passes\n" : "\n"
        if report.written.count > 1 {
            for (topic, count) in report.written.sorted(by: { $0.key < $1.key }) { text += "  \(topic)  \(count)\n" }
        }
        for (name, count) in report.failures.sorted(by: { $0.key < $1.key }) {
            text += "  \(Style.red("\(name)"))  \(count)\n"
        }
        if report.bad > 0 { text += "  \(report.bad) are bad events: they belong in the dead-letter topic\n" }
        if let worker = report.worker { text += people(worker) }
        let verdict: TerminalText = "\(ReplayVerdict.sentence(report))"
        return text + (report.succeeded ? Style.green(verdict) : Style.red(verdict)) + "\n"
    }

    private static func people(_ worker: ReplayReport.Worker) -> TerminalText {
        var text: TerminalText = "settled    \(worker.settled) of \(worker.wanted) by group \(worker.group)"
        text += worker.lag.map { $0 > 0 ? ", lag \($0)" : "" } ?? ""
        text += worker.parked > 0 ? ", \(worker.parked) parked\n" : "\n"
        text += "recipients \(worker.expected) named"
        for (name, count) in [
            ("with an outcome", worker.answered), ("of ended events", worker.endedWhole), ("repeats", worker.repeats),
            ("still in work", worker.open), ("lost", worker.lost), ("unknown", worker.unknown),
        ] where count > 0 {
            text += ", \(count) \(name)"
        }
        if worker.openAudiences > 0 { text += "; \(worker.openAudiences) events to groups stored in Redis only" }
        if worker.unjudged > 0 { text += "; \(worker.unjudged) not judged" }
        text += "\n"
        for (label, count) in worker.outcomes.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            text += "  \(Style.padded("\(label)", to: 32)) \(count)\n"
        }
        text += latency("written → outcome", worker.fromWriting)
        text += latency("accepted, since Kafka's time", worker.inWorker)
        for (lane, spread) in worker.lanes.sorted(by: { $0.key < $1.key }) { text += latency("lane \(lane)", spread) }
        return text
    }

    private static func latency(_ name: String, _ spread: LatencySpread) -> TerminalText {
        guard spread.count > 0 else { return "" }
        var text: TerminalText = "\(Style.padded("\(name)", to: 24))"
        for (name, share) in ReplayReport.shares {
            text += "  \(Style.dim("\(name)")) \(spread.percentile(share) ?? 0) ms"
        }
        return text + "  \(Style.dim("max")) \(spread.maxMs) ms\n"
    }

    private static func seconds(_ seconds: Double) -> String {
        let hundredths = Int((min(seconds, 1e12) * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) s"
    }
}
