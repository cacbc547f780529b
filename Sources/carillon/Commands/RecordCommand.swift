import Console
import Glibc
import JSON
import Kafka
import Worker

/// `carillon record`: a topic to NDJSON.
struct RecordCommand: Command {
    static let spec = CommandSpec(
        name: "record", summary: "a topic, or the part of it since a time, to NDJSON",
        details: """
            Reads all partitions without joining a group: nothing is committed and no worker is disturbed. One line per
            record: {"topic":…,"key":…,"value":…,"timestamp_ms":…}; order holds within a partition. Without --until-end it
            goes on until ctrl-C. `replay` and `explain` read what it writes. The file holds message texts and tokens: it
            is made readable by its owner only.

            exit codes: 0 done, 1 Kafka or the file is away, 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("topic", "TOPIC", "its name, or events or user-state for the configured ones", required: true),
            .value("out", "FILE", "- for standard output; an existing file is written anew", required: true),
            .value("from", "POINT", "earliest, \"offset N\" or \"time MS\" (offset:N, time:MS) (earliest)"),
            .flag("until-end", "ends when all partitions were read to their present end"),
            CommandSpec.json,
        ])

    private let path: String
    private let topic: String
    private let out: String
    private let start: KafkaTopicReader.Start
    private let untilEnd: Bool
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        topic = arguments.string("topic") ?? ""
        out = arguments.string("out") ?? ""
        untilEnd = arguments.has("until-end")
        isJSON = arguments.has("json")
        let text = arguments.string("from") ?? "earliest"
        let words = text.split { $0 == " " || $0 == ":" }
        switch (words.first, words.count == 2 ? Int64(words[1]) : nil) {
        case ("earliest", _) where words.count == 1: start = .earliest
        case ("offset", let number?) where number >= 0: start = .offset(number)
        case ("time", let number?) where number >= 0: start = .timeMs(number)
        default:
            throw Arguments.UsageError(message: "--from wants earliest, offset:N or time:MS; not \"\(text)\"")
        }
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        let name = TopicChoice.name(topic, in: configuration)
        do {
            let stop = StopFlag(try EndSignals())
            // First, so that a wrong topic leaves an existing file as it is.
            let reader = try KafkaTopicReader(
                configuration.kafka.client(id: "carillon-record"), topic: name, from: start)
            let file = try OutputFile(path: out)
            var bar = ProgressBar("recording", total: nil)
            let writer = RecordLineWriter()
            let outcome = try reader.read(
                silenceMs: untilEnd ? 10_000 : .max, untilEnd: untilEnd, isStopped: { stop.isSet }
            ) { record in
                let line = RecordLine(
                    topic: name, key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
                    timestampMs: record.timestampMs)
                try file.write(writer.bytes(of: line))
                bar.advance(to: bar.done + 1)
                return stop.isSet ? .stop : .goOn
            }
            try file.close()
            bar.clear()
            report(bar, name, outcome)
            return outcome == .timedOut ? .failed : .done
        } catch let fault as FileFault {
            Terminal.err("carillon record: \(fault)\n")
        } catch {
            Terminal.err("carillon record: Kafka at \(configuration.kafka.brokers): \(error)\n")
        }
        return .failed
    }

    private func report(_ bar: ProgressBar, _ topic: String, _ outcome: KafkaTopicReader.Outcome) {
        let why =
            switch outcome {
            case .reachedEnd: "read to its end"
            case .stopped: "stopped"
            case .timedOut: "INCOMPLETE: nothing came for ten seconds; are all brokers up?"
            }
        // Standard output may be the recording itself.
        let isTaken = out == "-"
        guard isJSON else {
            let text: TerminalText = "\(bar.done) records of \(topic), \(why), \(bar.secondsText)\n"
            if isTaken { Terminal.err(text) } else { Terminal.out(text) }
            return
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("topic", topic)
        writer.member("records", Int64(bar.done))
        writer.member("complete", outcome != .timedOut)
        writer.key("seconds")
        writer.double(bar.seconds)
        writer.endObject()
        let json = String(decoding: writer.bytes, as: UTF8.self) + "\n"
        if isTaken { Terminal.err(json: json) } else { Terminal.out(json: json) }
    }
}

/// Short names for the two input topics.
enum TopicChoice {
    static func name(_ choice: String, in configuration: Configuration) -> String {
        switch choice {
        case "events": configuration.kafka.topics.events
        case "user-state", "user_state": configuration.kafka.topics.userState
        default: choice
        }
    }
}
