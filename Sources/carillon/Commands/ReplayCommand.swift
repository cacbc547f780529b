import Console
import EventLoop
import JSON
import Kafka
import Worker

/// `carillon replay`: NDJSON to a topic.
struct ReplayCommand: Command {
    static let spec = CommandSpec(
        name: "replay", summary: "NDJSON to a topic, at a rate or as it came, with a report",
        details: """
            Reads what `record` writes, and plain events, one a line. A record goes to --topic, else to its own topic, else
            to the input topic that its kind belongs to; its key is its own, else conv.id or uid. Without --rate and --speed
            it goes as fast as the brokers take it. Ctrl-C stops and reports.

            exit codes: 0 all written, 1 stopped, failures, or Kafka or the file is away, 64 bad usage,
            78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("in", "FILE", "the records", required: true),
            .value("topic", "TOPIC", "events, user-state or a topic's name: all records go there"),
            .value("rate", "N", "records a second"),
            .value("speed", "X", "as fast as they were recorded, times X (by timestamp_ms, else sent_ms)"),
            .flag("shift-times", "moves all times together, so that the newest sent_ms is now"),
            CommandSpec.json,
        ])

    private let path: String
    private let input: String
    private let topic: String?
    private let pace: Pace
    private let shiftsTimes: Bool
    private let isJSON: Bool

    enum Pace {
        case unbounded
        case rate(Double)
        case speed(Double)
    }

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        input = arguments.string("in") ?? ""
        topic = arguments.string("topic")
        shiftsTimes = arguments.has("shift-times")
        isJSON = arguments.has("json")
        switch (arguments.string("rate"), arguments.string("speed")) {
        case (nil, nil): pace = .unbounded
        case (let text?, nil): pace = .rate(try Self.number(text, "rate"))
        case (nil, let text?): pace = .speed(try Self.number(text, "speed"))
        case (_?, _?): throw Arguments.UsageError(message: "--rate and --speed exclude each other")
        }
        if input == "-" { throw Arguments.UsageError(message: "--in wants a file: it is read twice") }
    }

    /// `500`, `0.5`; what follows a number, as in `500/s` or `2x`, is for people.
    private static func number(_ text: String, _ option: String) throws(Arguments.UsageError) -> Double {
        var digits = text[...]
        for ending in ["/s", "x"] where digits.hasSuffix(ending) { digits = digits.dropLast(ending.count) }
        guard let number = Double(digits), number > 0, number.isFinite else {
            throw Arguments.UsageError(message: "--\(option) wants a number above 0; \"\(text)\" is none")
        }
        return number
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        do {
            let stop = StopFlag(try EndSignals())
            let survey = try ReplaySurvey(path: input, stop: stop)
            guard survey.count > 0 else {
                Terminal.err("carillon replay: \(input) holds no record\n")
                return .failed
            }
            let shift = shiftsTimes ? survey.newestMs.map { TimeShift(byMs: Loop.wallMs() &- $0) } : nil
            if shiftsTimes, shift == nil {
                Terminal.err("carillon replay: no record has a sent_ms that could be moved\n")
                return .failed
            }
            let choice = topic.map { TopicChoice.name($0, in: configuration) }
            let run = try ReplayRun(configuration, topic: choice, shift: shift)
            return report(try play(run, survey, stop), stop)
        } catch let fault as LineReader.Fault {
            Terminal.err("carillon replay: \(fault.message)\n")
        } catch let fault as ReplayFault {
            Terminal.err("carillon replay: \(fault.message)\n")
        } catch {
            Terminal.err("carillon replay: Kafka at \(configuration.kafka.brokers): \(error)\n")
        }
        return .failed
    }

    private func play(_ run: ReplayRun, _ survey: ReplaySurvey, _ stop: StopFlag) throws -> ReplayReport {
        let reader = try LineReader(path: input)
        var bar = ProgressBar("replaying", total: survey.count)
        let started = Loop.monotonicNanos()
        var firstMs: Int64?
        while !stop.isSet, let line = reader.next() {
            let record = run.read(line)
            let afterSeconds: Double
            switch pace {
            case .unbounded: afterSeconds = 0
            case .rate(let rate): afterSeconds = Double(bar.done) / rate
            case .speed(let speed):
                let ms = record.atMs ?? firstMs ?? 0
                if firstMs == nil { firstMs = record.atMs }
                afterSeconds = Double(ms &- (firstMs ?? ms)) / 1000 / speed
            }
            if afterSeconds > 0 {
                stop.sleep(until: started &+ UInt64(min(afterSeconds, 1e9) * 1e9))
                if stop.isSet { break }
            }
            try run.write(record, line: reader.number)
            bar.advance(to: bar.done + 1)
        }
        let isFlushed = run.finish()
        bar.clear()
        return ReplayReport(
            records: bar.done, written: run.written, failures: run.failures, seconds: bar.seconds,
            secondsText: bar.secondsText, isFlushed: isFlushed)
    }

    private func report(_ report: ReplayReport, _ stop: StopFlag) -> ExitCode {
        Terminal.out(asJSON: isJSON, json: report.json, text: report.text)
        return report.failures.isEmpty && report.isFlushed && !stop.isSet ? .done : .failed
    }
}

/// What a replay did.
struct ReplayReport {
    var records: Int
    /// By the broker's word.
    var written: UInt64
    /// By librdkafka's name of the error.
    var failures: [String: Int]
    var seconds: Double
    var secondsText: String
    var isFlushed: Bool

    private var rate: Double { seconds > 0 ? Double(written) / seconds : 0 }

    var text: TerminalText {
        var text: TerminalText = "\(Style.bold("\(written) records")) in \(secondsText), "
        text += "\(ProgressBar.number(rate))/s, \(failures.values.reduce(0, +)) failed\n"
        for (name, count) in failures.sorted(by: { $0.key < $1.key }) {
            text += "  \(Style.red("\(name)"))  \(count)\n"
        }
        if !isFlushed { text += "  \(Style.red("the brokers did not confirm everything within 30 s"))\n" }
        return text
    }

    var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("records", Int64(records))
        writer.member("written", Int64(clamping: written))
        writer.key("seconds")
        writer.double(seconds)
        writer.key("rate")
        writer.double(rate)
        writer.member("flushed", isFlushed)
        writer.key("failures")
        writer.counts(failures)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
