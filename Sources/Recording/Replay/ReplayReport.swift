// SPDX-License-Identifier: Apache-2.0
internal import JSON

/// The actions and results of a replay.
public struct ReplayReport: Sendable {
    public var file: String
    /// Unix ms.
    public var startedMs: Int64
    /// Nil where nobody named it.
    public var origin: ReportOrigin?
    /// Seconds until the last record was written.
    public var writingSeconds = 0.0
    public var seconds = 0.0
    public var passes = 1
    /// True if ctrl-C ended it.
    public var isStopped = false
    /// Records given to the producers.
    public var records = 0
    /// Records that the brokers confirmed, per topic.
    public var written: [String: Int] = [:]
    /// Failed records by librdkafka's error name.
    public var failures: [String: Int] = [:]
    /// The brokers answered for every record.
    public var isFlushed = true
    /// Records that the worker's reader refuses. They must arrive in the dead-letter topic.
    public var bad = 0
    /// Nil if nothing was watched; `unwatched` gives the reason.
    public var worker: Worker?
    public var unwatched = ""
    public var samples: [Sample] = []

    public init(file: String, startedMs: Int64) {
        self.file = file
        self.startedMs = startedMs
    }

    /// The worker's results.
    public struct Worker: Sendable {
        public var group: String
        /// Written records in topics that the worker reads.
        public var wanted = 0
        public var settled = 0
        /// Records that the group has not settled in those topics, from any writer; nil if the brokers did not report
        /// it.
        public var lag: Int64?
        /// Records in the topic of parked work.
        public var parked: Int64 = 0
        /// Records that the brokers deleted (`retention.ms`, `retention.bytes`) before the group settled them.
        public var deleted: Int64 = 0
        public var expected = 0
        public var answered = 0
        public var endedWhole = 0
        public var repeatedInFile = 0
        /// Recipients without an outcome that Redis' marks show as finished before this replay.
        public var repeats = 0
        /// Begun and not finished: parked, held or in progress.
        public var open = 0
        /// Recipients of settled records without any trace of an outcome.
        public var lost = 0
        /// Recipients without an outcome that were not looked up.
        public var unknown = 0
        /// The reason for `unknown`.
        public var unknownWhy = ""
        public var openAudiences = 0
        public var unjudged = 0
        public var duplicates = 0
        public var contradictions = 0
        public var uninvited = 0
        public var foreign = 0
        public var unreadable = 0
        public var outcomes: [String: Int] = [:]
        public var fromWriting = LatencySpread()
        public var inWorker = LatencySpread()
        public var lanes: [String: LatencySpread] = [:]

        public init(group: String) {
            self.group = group
        }

        public mutating func take(_ judge: ReplayJudge) {
            expected = judge.expected
            answered = judge.answered
            endedWhole = judge.endedWhole
            repeatedInFile = judge.repeatedInFile
            openAudiences = judge.openAudiences
            unjudged = judge.unjudged
            duplicates = judge.duplicates
            contradictions = judge.contradictions
            uninvited = judge.uninvited
            foreign = judge.foreign
            unreadable = judge.unreadable
            outcomes = judge.outcomes
            fromWriting = judge.fromWriting
            inWorker = judge.inWorker
            lanes = judge.lanes
        }

        /// Every named recipient was finished before this replay.
        public var areAllRepeats: Bool { expected > 0 && repeats == expected }
        public var isSettled: Bool { settled >= wanted }
        /// No rule is broken.
        public var succeeded: Bool {
            isSettled && lost == 0 && duplicates == 0 && contradictions == 0 && uninvited == 0
        }
    }

    /// One sample of the run. Counts cover the run so far.
    public struct Sample: Sendable, Equatable {
        public var seconds: Double
        public var written: Int
        public var settled: Int
        public var outcomes: Int
        public var lag: Int64?

        public init(seconds: Double, written: Int, settled: Int, outcomes: Int, lag: Int64?) {
            self.seconds = seconds
            self.written = written
            self.settled = settled
            self.outcomes = outcomes
            self.lag = lag
        }
    }

    public static let samplesMax = 600

    /// Adds a sample. If there are too many, every second one is dropped.
    public mutating func add(_ sample: Sample) {
        samples.append(sample)
        if samples.count > Self.samplesMax {
            samples = samples.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
        }
    }

    public var writtenCount: Int { written.values.reduce(0, +) }
    public var failedCount: Int { failures.values.reduce(0, +) }
    public var rate: Double { writingSeconds > 0 ? Double(writtenCount) / writingSeconds : 0 }
    public var succeeded: Bool { failures.isEmpty && isFlushed && !isStopped && (worker?.succeeded ?? true) }

    /// The percentiles of all reports.
    public static let shares: [(name: String, share: Double)] = [
        ("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999),
    ]
}

extension ReplayReport {
    /// One JSON object, for programs.
    public var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("file", file)
        if let origin { origin.write(to: &writer) } else { writer.member("started_ms", startedMs) }
        writer.member("records", Int64(records))
        writer.member("written", Int64(writtenCount))
        writer.key("seconds")
        writer.double(writingSeconds)
        writer.key("seconds_all")
        writer.double(seconds)
        writer.key("rate")
        writer.double(rate)
        writer.member("passes", Int64(passes))
        writer.member("stopped", isStopped)
        writer.member("flushed", isFlushed)
        writer.member("bad", Int64(bad))
        writer.counts("topics", written)
        writer.counts("failures", failures)
        writer.key("worker")
        if let worker { writer.worker(worker) } else { writer.null() }
        if worker == nil { writer.member("unwatched", unwatched) }
        writer.member("well", succeeded)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}

extension JSONWriter {
    fileprivate mutating func worker(_ worker: ReplayReport.Worker) {
        beginObject()
        member("group", worker.group)
        member("wanted", Int64(worker.wanted))
        member("settled", Int64(worker.settled))
        if let lag = worker.lag { member("lag", lag) }
        member("parked", worker.parked)
        member("deleted", worker.deleted)
        key("recipients")
        beginObject()
        for (name, count) in worker.recipientCounts {
            key(name)
            int(count)
        }
        endObject()
        member("all_repeats", worker.areAllRepeats)
        member("duplicates", Int64(worker.duplicates))
        member("contradictions", Int64(worker.contradictions))
        member("uninvited", Int64(worker.uninvited))
        member("foreign", Int64(worker.foreign))
        member("unreadable", Int64(worker.unreadable))
        counts("outcomes", worker.outcomes)
        key("latency_ms")
        beginObject()
        key("written_to_outcome")
        spread(worker.fromWriting)
        key("accepted_in_worker")
        spread(worker.inWorker)
        key("lanes")
        beginObject()
        for (lane, latency) in worker.lanes.sorted(by: { $0.key < $1.key }) {
            key(escaping: lane)
            spread(latency)
        }
        endObject()
        endObject()
        endObject()
    }

    private mutating func spread(_ latency: LatencySpread) {
        beginObject()
        member("count", Int64(latency.count))
        for (name, share) in ReplayReport.shares {
            guard let value = latency.percentile(share) else { continue }
            key(escaping: name)
            int(value)
        }
        member("max", latency.maxMs)
        endObject()
    }

    fileprivate mutating func counts(_ name: StaticString, _ counts: [String: Int]) {
        key(name)
        beginObject()
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            key(escaping: name)
            int(count)
        }
        endObject()
    }
}

extension ReplayReport.Worker {
    /// Counts of recipients by result, in the order of the report.
    var recipientCounts: KeyValuePairs<StaticString, Int> {
        [
            "expected": expected, "with_outcome": answered, "ended_with_event": endedWhole, "repeats": repeats,
            "repeated_in_file": repeatedInFile, "open": open, "lost": lost, "unknown": unknown,
            "open_audiences": openAudiences, "unjudged": unjudged,
        ]
    }
}
