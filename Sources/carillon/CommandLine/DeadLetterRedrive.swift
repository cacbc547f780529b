// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import Kafka
import Recording
import Worker

/// Writes dead letters back to their original topics, without the worker's headers.
///
/// Reads the dead-letter topic twice: first to count and check, then to write the counted records. Dead letters that
/// arrive in between, including records that are refused again, are left alone.
final class DeadLetterRedrive {
    struct Settings {
        /// Replaces each record's original topic; nil keeps it.
        var target: String?
        /// Includes records that the worker would refuse again.
        var takesBad = false
        var isDryRun = false
    }

    /// The written records, or those that would be written.
    struct Report {
        var selected = 0
        /// Records by target topic.
        var wanted: [String: Int] = [:]
        /// Not written, because the worker would refuse them again; by rule.
        var stillBad: [String: Int] = [:]
        /// Not written, because their headers name no topic that the worker reads.
        var homeless = 0
        /// Not written, because the same record is in the topic twice.
        var repeats = 0
        var written: [String: Int] = [:]
        var failures: [String: Int] = [:]
        var isDryRun = false
        var isComplete = true

        var wantedCount: Int { wanted.values.reduce(0, +) }
        var writtenCount: Int { written.values.reduce(0, +) }
        var succeeded: Bool { isComplete && failures.isEmpty && (isDryRun || writtenCount == wantedCount) }
    }

    /// The original position of a refused record. At-least-once writing may leave two dead letters of one record.
    private struct Source: Hashable {
        var topic: UTF8Key
        var partition: Int32
        var offset: Int64
    }

    private let settings: Settings
    private let configuration: Configuration
    private let reading: DeadLetterReading
    private let stop: StopFlag
    /// Topics that the worker reads. A header can name no other target.
    private let homes: [String]
    private var seen = Set<Source>()
    private static let seenMax = 1_000_000

    init(_ settings: Settings, _ reading: DeadLetterReading, _ configuration: Configuration, stop: StopFlag) {
        self.settings = settings
        self.reading = reading
        self.configuration = configuration
        self.stop = stop
        let topics = configuration.kafka.topics
        homes = [topics.events, topics.userState, topics.chunks, topics.parked]
    }

    func run() throws -> Report {
        var report = Report()
        report.isDryRun = settings.isDryRun
        var last: [Int32: Int64] = [:]
        var looking = ProgressBar("reading", total: nil)
        let outcome = try reading.read(stop: stop) { item in
            last[item.partition] = max(last[item.partition] ?? -1, item.offset)
            if let target = judge(item, &report) { report.wanted[target, default: 0] += 1 }
            looking.advance(to: report.selected)
        }
        looking.clear()
        // Reaching the limit is complete; a signal is not.
        report.isComplete = outcome != .timedOut && !stop.isSet
        guard report.isComplete, !settings.isDryRun, report.wantedCount > 0 else { return report }
        try check(Array(report.wanted.keys))
        try write(last, &report)
        return report
    }

    /// The target topic of a dead letter; nil if it is not written, which is counted with the reason.
    private func judge(_ item: DeadLetterItem, _ report: inout Report) -> String? {
        report.selected += 1
        guard let target = settings.target ?? homes.first(where: { $0.isSame(as: item.note.topic) }) else {
            report.homeless += 1
            return nil
        }
        let judgement = settings.target == nil ? item.judgement : reading.judge(item.value, of: target)
        if !settings.takesBad, let rule = judgement.rule {
            report.stillBad[rule, default: 0] += 1
            return nil
        }
        guard isFirst(item.note) else {
            report.repeats += 1
            return nil
        }
        return target
    }

    private func isFirst(_ note: DeadLetterNote) -> Bool {
        guard let topic = note.topic, let partition = note.partition, let offset = note.offset,
            seen.count < Self.seenMax
        else { return true }
        return seen.insert(Source(topic: UTF8Key(topic), partition: partition, offset: offset)).inserted
    }

    /// Runs before anything is written. A missing topic would take nothing, or the broker would create it.
    private func check(_ targets: [String]) throws {
        let client = configuration.kafka.client(id: "carillon-dlq")
        let known = try ClusterMetadata.fetch(client, timeoutMs: 10_000).topics.map(\.name)
        for target in targets.sorted() where !known.containsSame(target) {
            throw ReplayFault(message: "topic \(target) does not exist")
        }
    }

    private func write(_ last: [Int32: Int64], _ report: inout Report) throws {
        let producers = try ReplayProducers(
            configuration.kafka.client(id: "carillon-dlq"), count: 1, topics: report.wanted.keys.sorted())
        seen = []
        var bar = ProgressBar("redriving", total: report.wantedCount)
        var again = Report()
        let outcome = try reading.read(stop: stop) { item in
            guard item.offset <= last[item.partition] ?? -1, let target = judge(item, &again) else { return }
            producers.write(
                ReplaySource.Record(
                    topic: target, key: item.key, value: item.value,
                    headers: DeadLetterNote.others(item.headers).map { KafkaHeader(name: $0.name, value: $0.value) }),
                stop: stop)
            bar.advance(to: bar.done + 1)
        }
        if !producers.finish() { report.isComplete = false }
        bar.clear()
        if outcome == .timedOut || stop.isSet { report.isComplete = false }
        report.written = producers.written
        report.failures = producers.failures
    }
}
