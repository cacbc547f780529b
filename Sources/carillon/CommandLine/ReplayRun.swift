// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Kafka
import Recording
import Worker

/// Writes a file to topics at its pace and the given number of times, and watches the results.
final class ReplayRun {
    struct Settings {
        var input: String
        var topic: String?
        var pace = ReplayPace(.unbounded)
        var durationSeconds: Double?
        var loops = false
        var shiftsTimes = false
        var freshIDs = false
        var producers = 1
        /// Seconds without the worker's progress after the last record until the run gives up.
        var waitSeconds = 10.0
    }

    private let settings: Settings
    private let configuration: Configuration
    private let stop: StopFlag
    private let source: ReplaySource
    private let survey: ReplaySurvey
    private let events: ReplayEvents
    private let producers: ReplayProducers
    /// Nil if nothing is watched.
    private let watch: ReplayWatch?
    /// Start of writing. Time before it counts for no record.
    private var startedNanos = Loop.monotonicNanos()
    private let tag: String
    private(set) var report: ReplayReport
    private var bar: ProgressBar
    private var sampledNanos: UInt64 = 0
    private var polledNanos: UInt64 = 0
    private static let sampleNanos: UInt64 = 500_000_000
    private static let pollNanos: UInt64 = 20_000_000

    /// Asks the cluster for its topics, so that a wrong name is reported before anything is written.
    init(_ settings: Settings, _ configuration: Configuration, stop: StopFlag) throws {
        self.settings = settings
        self.configuration = configuration
        self.stop = stop
        let topics = configuration.kafka.topics
        source = ReplaySource(topics, topic: settings.topic)
        survey = try ReplaySurvey(source, path: settings.input, stop: stop)
        guard survey.count > 0 else { throw ReplayFault(message: "\(settings.input) contains no record") }
        if settings.shiftsTimes, survey.newestMs == nil {
            throw ReplayFault(message: "no record has a sent_ms that could be moved")
        }
        let client = configuration.kafka.client(id: "carillon-replay")
        let known = Set(try ClusterMetadata.fetch(client, timeoutMs: 10_000).topics.map(\.name))
        for (topic, line) in survey.topics.sorted(by: { $0.value < $1.value }) where !known.contains(topic) {
            throw ReplayFault(
                message: "line \(line): topic \(topic) does not exist: create it, or choose another with --topic")
        }
        events = ReplayEvents(configuration)
        report = ReplayReport(file: settings.input, startedMs: Loop.wallMs())
        let inputs = Set(survey.topics.keys).intersection([topics.events, topics.userState])
        (watch, report.unwatched) = Self.watch(configuration, inputs, known, settings)
        producers = try ReplayProducers(client, count: settings.producers, topics: survey.topics.keys.sorted())
        tag = String(UInt32.random(in: 0 ... .max), radix: 36)
        bar = ProgressBar("replaying", total: settings.loops ? nil : survey.count)
    }

    private static func watch(
        _ configuration: Configuration, _ inputs: Set<String>, _ known: Set<String>, _ settings: Settings
    ) -> (ReplayWatch?, String) {
        if settings.waitSeconds == 0 { return (nil, "the worker was not waited for") }
        if inputs.isEmpty { return (nil, "no worker reads these topics") }
        let results = configuration.kafka.topics.results
        guard known.contains(results) else { return (nil, "there is no topic \(results)") }
        do {
            return (try ReplayWatch(configuration, inputs: inputs), "")
        } catch {
            return (nil, "\(results) could not be read: \(error)")
        }
    }

    // MARK: Writing

    func play() throws -> ReplayReport {
        startedNanos = Loop.monotonicNanos()
        sample(force: true)
        var pass = 0
        var index = 0
        repeat {
            let reader = try LineReader(path: settings.input)
            let rewriter = rewriter(pass: pass, startMs: Loop.wallMs())
            while !isOver, let line = try reader.next() {
                var record = source.read(line)
                guard wait(index, record, pass: pass) else { break }
                record.value = record.value.map { rewriter.apply(to: $0) }
                write(record)
                index += 1
            }
            pass += 1
        } while settings.loops && !isOver
        report.passes = pass
        report.isStopped = stop.isSet && !(settings.loops && settings.durationSeconds == nil)
        report.isFlushed = producers.finish()
        report.writingSeconds = elapsed
        if let watch { settle(watch) }
        bar.clear()
        sample(force: true)
        report.seconds = elapsed
        report.written = producers.written
        report.failures = producers.failures
        return report
    }

    private var elapsed: Double { Double(Loop.monotonicNanos() - startedNanos) / 1e9 }

    private var isOver: Bool {
        stop.isSet || (settings.durationSeconds.map { elapsed >= $0 } ?? false)
    }

    /// Waits until the record is due. Returns false if it will not be written.
    private func wait(_ index: Int, _ record: ReplaySource.Record, pass: Int) -> Bool {
        let first = survey.firstAtMs ?? 0
        let sinceFirst = max(0, (record.atMs ?? first).subtractingReportingOverflow(first).partialValue)
        let recorded = Double(survey.spanMs) / 1000 * Double(pass) + Double(sinceFirst) / 1000
        let due = min(settings.pace.dueSeconds(index: index, recordedSeconds: recorded), 1e9)
        let dueNanos = startedNanos &+ UInt64(due * 1e9)
        while !isOver {
            tick()
            let now = Loop.monotonicNanos()
            if now >= dueNanos { return true }
            stop.sleep(until: min(dueNanos, now &+ Self.pollNanos))
        }
        return false
    }

    private func write(_ record: ReplaySource.Record) {
        report.records += 1
        if let watch {
            // Taken before the worker can have read the record.
            let topics = configuration.kafka.topics
            if record.topic == topics.events || record.topic == topics.userState {
                switch events.read(record.value, of: record.topic == topics.events ? .events : .userState) {
                case .event(let found): watch.wrote(found.event)
                case .userState: break
                case .bad: report.bad += 1
                }
            }
        }
        producers.write(record, stop: stop)
        bar.advance(to: report.records)
    }

    /// Looks at the results at intervals.
    private func tick() {
        let now = Loop.monotonicNanos()
        guard now - polledNanos >= Self.pollNanos else { return }
        polledNanos = now
        watch?.poll()
        sample(force: false)
    }

    private func sample(force: Bool) {
        let now = Loop.monotonicNanos()
        guard force || now - sampledNanos >= Self.sampleNanos else { return }
        sampledNanos = now
        producers.takeReports()
        let standing = watch?.standing(producers)
        report.add(
            ReplayReport.Sample(
                seconds: elapsed, written: producers.written.values.reduce(0, +), settled: standing?.settled ?? 0,
                outcomes: watch?.judge.outcomes.values.reduce(0, +) ?? 0, lag: standing?.lag))
        if let lag = standing?.lag { bar.note = "lag \(lag)" }
    }

    // MARK: Waiting

    /// Waits until the worker has settled everything, or makes no more progress.
    private func settle(_ watch: ReplayWatch) {
        var waiting = ProgressBar("settling", total: watch.standing(producers).wanted)
        let begun = Loop.monotonicNanos()
        var patience = ReplayPatience(waitSeconds: settings.waitSeconds, nowNanos: begun)
        let stoppedAt = stop.isSet ? begun : nil
        // A look that began before the last record was written does not cover that record.
        let looksWanted = watch.standing(producers).looks + 2
        while true {
            watch.poll()
            sample(force: false)
            let standing = watch.standing(producers)
            waiting.advance(to: standing.settled)
            if standing.settled >= standing.wanted, standing.parked == 0, standing.looks >= looksWanted { break }
            let now = Loop.monotonicNanos()
            let state = [standing.settled, Int(clamping: standing.parked), watch.judge.answered]
            if patience.isOver(state, looks: standing.looks, nowNanos: now) { break }
            if stop.isSet, Double(now - (stoppedAt ?? now)) / 1e9 >= 2 || stoppedAt == nil { break }
            StopFlag.pause(milliseconds: 20)
        }
        waiting.clear()
        watch.drain()
        let standing = watch.standing(producers)
        var worker = ReplayReport.Worker(group: watch.group)
        worker.take(watch.judge)
        worker.wanted = standing.wanted
        worker.settled = standing.settled
        worker.lag = standing.lag
        worker.parked = standing.parked
        worker.deleted = standing.deleted
        report.worker = worker
        if !standing.isKnown {
            report.worker = nil
            report.unwatched =
                standing.fault.map { "how far group \(watch.group) has come is not known: \($0)" }
                ?? "group \(watch.group) has settled nothing: no worker runs"
        }
    }

    // MARK: Passes

    private func rewriter(pass: Int, startMs: Int64) -> ReplayRewriter {
        var shift: TimeShift?
        if settings.shiftsTimes, let newestMs = survey.newestMs {
            let wanted = startMs &+ settings.pace.newestAfterMs(recordedMs: survey.spanMs)
            shift = TimeShift(byMs: wanted &- newestMs)
        }
        return ReplayRewriter(shift: shift, fresh: fresh(pass: pass))
    }

    private func fresh(pass: Int) -> FreshIDs? {
        settings.freshIDs ? FreshIDs(tag: tag, pass: pass, seqs: survey.seqs, startMs: report.startedMs) : nil
    }

    /// Recipients without an outcome, found by reading the file again as it was written. Stops at `max`.
    func silent(max: Int) throws -> [(pair: PairName, eventID: String, writtenMs: Int64)] {
        guard let watch else { return [] }
        var silent: [(PairName, String, Int64)] = []
        var left = report.records
        var seen = Set<PairKey>()
        for pass in 0..<report.passes {
            let rewriter = ReplayRewriter(shift: nil, fresh: fresh(pass: pass))
            let reader = try LineReader(path: settings.input)
            while left > 0, silent.count < max, !stop.isSet, let line = try reader.next() {
                left -= 1
                let record = source.read(line)
                guard record.topic == configuration.kafka.topics.events, let value = record.value,
                    case .event(let found) = events.read(rewriter.apply(to: value), of: .events),
                    let writtenMs = watch.judge.writtenMs(found.event)
                else { continue }
                for uid in found.event.recipients ?? [] where watch.judge.isSilent(found.event, uid: uid) {
                    let key = PairKey(event: "\(found.event.app) \(found.event.id)", uid: uid)
                    if silent.count < max, seen.insert(key).inserted {
                        silent.append((found.pair(uid), found.event.id, writtenMs))
                    }
                }
            }
        }
        return silent
    }

    private struct PairKey: Hashable {
        var event: String
        var uid: String
    }
}
