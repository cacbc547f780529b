// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Kafka
import Recording
import Worker

/// `carillon replay`: NDJSON to topics.
struct ReplayCommand: Command {
    static let spec = CommandSpec(
        name: "replay",
        summary: "NDJSON to topics, at a rate or with its own timing, with a report of the worker's results",
        details: """
            Reads files of `record`, compressed or not, and plain events, one per line. A record goes to --topic, else to its own
            topic, else to the input topic of its kind. It keeps its key and headers; without a key it gets conv.id or uid. Without
            --rate and --speed the command writes as fast as the brokers accept. Dead letters need --topic, and lose the headers of
            the worker.

            Workers skip finished records: a second replay of a file repeats nothing, and the report shows it. --fresh-ids adds a mark
            of this replay (and pass) to event_id, msg_id and references to them, and raises server_seq and up_to_seq by one amount, so
            that no record is a repeat; users, conversations, tokens and their versions stay. Reads by time (up_to_ms) cover messages
            that were sent before: use --shift-times too.

            --shift-times shifts all times by one amount, so that the newest sent_ms is now; with --speed, so that no record is dated
            later than its write. In a loop each pass has its own shift.

            At the end the command waits for the worker's group while it makes progress (--wait), and reports written and settled
            records, outcomes in push.results by reason, latencies (by the clocks of this machine and of the workers), and whether
            every named recipient has one final outcome. It looks up recipients without one in Redis: finished before (repeats), in
            progress, or lost. A pid that was accepted twice is a duplicate. Members of groups stored only in Redis are counted but
            not judged. Ctrl-C stops the command, which then reports the work so far.

            exit codes: 0 all written and, if a worker was watched, settled with nothing lost or doubled; 1 otherwise, if stopped, or
            if Kafka is down or the file is not readable; 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("in", "FILE", "the records", required: true),
            .value(
                "topic", "TOPIC", "a topic's name, or a key of kafka.topics such as events: all records go there"),
            .value("rate", "N", "records a second"),
            .value("speed", "X", "as fast as they were recorded, times X (by timestamp_ms, else sent_ms)"),
            .value("ramp", "TIME", "the pace rises evenly to its full value: 30s, 5m"),
            .value("duration", "TIME", "ends after so long: 90s, 5m, 2h"),
            .flag("loop", "starts over at the file's end, until --duration or ctrl-C"),
            .flag("fresh-ids", "new ids, so that nothing is a repeat"),
            .flag("shift-times", "moves all times together, so that the newest sent_ms is now"),
            .value("producers", "N", "number of Kafka clients that write, each key by one of them, 1-64 (1)"),
            .value(
                "wait", "TIME",
                "the report waits while the worker makes progress within this time; 0: it covers writing only (10s)"
            ),
            .value("html", "FILE", "the report as a page with plots, whole in itself"),
            .value("compare", "FILE", "with --html: the --json of an earlier run, whose figures stand beside these"),
            CommandSpec.json,
        ])

    private let path: String
    private let topic: String?
    private var settings: ReplayRun.Settings
    private let html: String?
    private let compare: String?
    /// As given, without those about the report.
    private let given: [String]
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        topic = arguments.string("topic")
        html = arguments.string("html")
        isJSON = arguments.has("json")
        compare = arguments.string("compare")
        if compare != nil, html == nil { throw Arguments.UsageError(message: "--compare needs --html") }
        given = arguments.given(without: ["html", "compare", "json"])
        settings = ReplayRun.Settings(input: arguments.string("in") ?? "")
        settings.loops = arguments.has("loop")
        settings.freshIDs = arguments.has("fresh-ids")
        settings.shiftsTimes = arguments.has("shift-times")
        settings.producers = try arguments.int("producers", default: 1, in: 1...64)
        settings.durationSeconds = try TimeSpan.seconds(arguments, "duration")
        if settings.durationSeconds == 0 { throw Arguments.UsageError(message: "--duration needs more than 0") }
        settings.waitSeconds = try TimeSpan.seconds(arguments, "wait") ?? settings.waitSeconds
        let kind: ReplayPace.Kind
        switch (arguments.string("rate"), arguments.string("speed")) {
        case (nil, nil): kind = .unbounded
        case (let text?, nil): kind = .rate(try Self.number(text, "rate"))
        case (nil, let text?): kind = .speed(try Self.number(text, "speed"))
        case (_?, _?): throw Arguments.UsageError(message: "--rate and --speed exclude each other")
        }
        let ramp = try TimeSpan.seconds(arguments, "ramp")
        if ramp != nil, kind == .unbounded {
            throw Arguments.UsageError(
                message: "--ramp needs --rate or --speed: without them there is no pace to rise to")
        }
        settings.pace = ReplayPace(kind, rampSeconds: ramp ?? 0)
    }

    /// Parses `500` or `0.5`. A suffix such as in `500/s` or `2x` is ignored.
    private static func number(_ text: String, _ option: String) throws(Arguments.UsageError) -> Double {
        var digits = text[...]
        for ending in ["/s", "x"] where digits.hasSuffix(ending) { digits = digits.dropLast(ending.count) }
        guard let number = Double(digits), number > 0, number.isFinite else {
            throw Arguments.UsageError(message: "--\(option) needs a number above 0; \"\(text)\" is not one")
        }
        return number
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        var settings = settings
        settings.topic = topic.map { TopicChoice.name($0, in: configuration) }
        do {
            let comparison = try compare.map { try ReportComparison(readingFrom: $0, ReplayPage.figures) }
            let stop = StopFlag(try EndSignals())
            let run = try ReplayRun(settings, configuration, stop: stop)
            var report = try run.play()
            report.origin = ReportOrigin(
                startedMs: report.startedMs, version: WorkerProcess.version, settings: given)
            if var worker = report.worker {
                try await ReplaySilent.judge(&worker, run, configuration)
                report.worker = worker
            }
            Terminal.out(asJSON: isJSON, json: report.json, text: ReplayText.people(report))
            if let html { try write(ReplayPage(report, comparedBy: comparison).html, to: html) }
            return report.succeeded ? .done : .failed
        } catch let fault as LineReader.Fault {
            Terminal.err("carillon replay: \(fault.message)\n")
        } catch let fault as ReplayFault {
            Terminal.err("carillon replay: \(fault.message)\n")
        } catch let fault as ReportComparison.Fault {
            Terminal.err("carillon replay: \(fault.description)\n")
        } catch let fault as FileFault {
            Terminal.err("carillon replay: \(fault)\n")
        } catch {
            Terminal.err("carillon replay: Kafka at \(configuration.kafka.brokers): \(error)\n")
        }
        return .failed
    }

    private func write(_ page: String, to path: String) throws {
        let file = try OutputFile(path: path)
        try file.write(Array(page.utf8))
        try file.close()
    }
}
