// SPDX-License-Identifier: Apache-2.0
import Console
import Glibc
import JSON
import Kafka
import Recording
import Worker

/// `carillon record`: topics to NDJSON.
struct RecordCommand: Command {
    static let spec = CommandSpec(
        name: "record", summary: "topics, or the part of them between two points, to NDJSON",
        details: """
            Reads all partitions without joining a group: it commits nothing and disturbs no worker. One line per record:
            {"topic":…,"key":…,"value":…,"timestamp_ms":…,"headers":[[name,value]…]}, in the order of time over all topics; records of
            one partition keep their order. Without --until and --until-end it runs until ctrl-C. `replay` and `explain` read the
            file, compressed or not. The file contains message texts and tokens: only its owner can read it.

            A POINT is the same for all partitions: earliest, offset:N, time:MS (Unix milliseconds) or a time such as
            2026-11-22T14:05:00Z. --until names the first record that is not written; the command also ends at the present end, unless
            that time is in the future.

            --scrub makes a recording that cannot reach a phone and contains no private text. Device tokens become fakes of the same
            length, equal for equal tokens; so does every text of 64 or more hexadecimal digits. Titles, contents, nicknames, names,
            custom keys, states of Live Activities and all fields that the contract does not name become placeholders: letters x, X,
            ж, 文 of the same bytes, and digits 0. Digits of telephone numbers become 0 too, and addresses point to example.invalid. A
            number of seven or more digits in custom keys becomes ones. Bad records, and headers that the worker does not write,
            become one fixed text. Field names, times, counts, words of the protocol and identifiers (users, conversations, devices,
            messages) stay, so that the records still fit together: replay the file only with a Redis without real tokens of these
            users. --scrub-ids replaces the identifiers too; then Redis does not know the members of groups. Two recordings have the
            same fakes if both use the same --scrub-key.

            exit codes: 0 done, 1 Kafka is down or the file cannot be written, 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value(
                "topic", "TOPIC", "its name, or a key of kafka.topics such as events or user-state", required: true,
                repeatable: true),
            .value("out", "FILE", "- for standard output; an existing file is overwritten", required: true),
            .value("from", "POINT", "where to begin (earliest)"),
            .value("until", "POINT", "where to end: the first that is left out"),
            .flag("until-end", "ends when all partitions were read to their present end"),
            .flag("zstd", "compressed; without it too where FILE ends in .zst"),
            .flag("scrub", "tokens and texts are replaced"),
            .flag("scrub-ids", "identifiers too; with --scrub"),
            .value("scrub-key", "FILE", "a secret of 16 bytes or more: equal ones make equal fakes (one of its own)"),
            CommandSpec.json,
        ])

    private let path: String
    private let topics: [String]
    private let out: String
    private let start: KafkaTopicReader.Start
    private let end: KafkaMergedReader.End
    private let isCompressed: Bool
    private let scrubs: Bool
    private let scrubsIDs: Bool
    private let scrubKeyFile: String?
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        topics = arguments.strings("topic")
        out = arguments.string("out") ?? ""
        isCompressed = arguments.has("zstd") || out.hasSuffix(".zst")
        scrubs = arguments.has("scrub")
        scrubsIDs = arguments.has("scrub-ids")
        scrubKeyFile = arguments.string("scrub-key")
        isJSON = arguments.has("json")
        start = try InputPoint.read(arguments, "from")?.start ?? .earliest
        switch (try InputPoint.read(arguments, "until"), arguments.has("until-end")) {
        case (_?, true): throw Arguments.UsageError(message: "--until and --until-end exclude each other")
        case (nil, let untilEnd): end = untilEnd ? .present : .never
        case (let point?, false):
            guard let end = point.end else {
                throw Arguments.UsageError(message: "--until earliest would leave nothing")
            }
            self.end = end
        }
        if !scrubs, scrubsIDs || scrubKeyFile != nil {
            throw Arguments.UsageError(message: "--scrub-ids and --scrub-key need --scrub")
        }
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        var names: [String] = []
        for choice in topics {
            let name = TopicChoice.name(choice, in: configuration)
            if !names.contains(name) { names.append(name) }
        }
        let own = configuration.kafka.topics
        if scrubs, let name = names.first(where: { $0 == own.chunks || $0 == own.parked }) {
            Terminal.err("carillon record: \(name) has a format of the worker's own, which cannot be scrubbed\n")
            return .usage
        }
        do {
            return try record(names, configuration)
        } catch let fault as FileFault {
            Terminal.err("carillon record: \(fault)\n")
        } catch {
            Terminal.err("carillon record: Kafka at \(configuration.kafka.brokers): \(error)\n")
        }
        return .failed
    }

    private func record(_ names: [String], _ configuration: Configuration) throws -> ExitCode {
        let stop = StopFlag(try EndSignals())
        var scrubber = try scrubber(configuration)
        // Opened first, so that a wrong topic leaves an existing file unchanged.
        let reader = try KafkaMergedReader(
            configuration.kafka.client(id: "carillon-record"), topics: names, from: start, until: end)
        let file = try OutputFile(path: out, isCompressed: isCompressed)
        var bar = ProgressBar("recording", total: nil)
        let writer = RecordLineWriter()
        let outcome = try reader.read(isStopped: { stop.isSet }) { topic, record in
            var line = RecordLine(
                topic: topic, key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
                timestampMs: record.timestampMs, headers: record.recordingHeaders)
            if scrubs { line = scrubber.scrub(line) }
            try file.write(writer.bytes(of: line))
            bar.advance(to: bar.done + 1)
            return stop.isSet ? .stop : .goOn
        }
        try file.close()
        bar.clear()
        report(bar, names, outcome, scrubber)
        return outcome == .timedOut ? .failed : .done
    }

    private func scrubber(_ configuration: Configuration) throws -> Scrubber {
        var key = try ScrubKey.random()
        if let scrubKeyFile {
            guard let own = ScrubKey(try Files.read(scrubKeyFile)) else {
                throw FileFault("\(scrubKeyFile): a secret of \(ScrubKey.bytesMin) bytes or more is required")
            }
            key = own
        }
        return Scrubber(key: key, scrubsIDs: scrubsIDs, tokenKeyedTopics: [configuration.kafka.topics.feedback])
    }

    private func report(
        _ bar: ProgressBar, _ topics: [String], _ outcome: KafkaTopicReader.Outcome, _ scrubber: Scrubber
    ) {
        let why =
            switch outcome {
            case .reachedEnd: "read to the end"
            case .stopped: "stopped"
            case .timedOut: "INCOMPLETE: nothing came for ten seconds; are all brokers up?"
            }
        // Standard output may be the recording itself.
        let isTaken = out == "-"
        guard isJSON else {
            var text: TerminalText =
                "\(bar.done) records of \(topics.joined(separator: ", ")), \(why), \(bar.secondsText)\n"
            if scrubs {
                text += "scrubbed: \(scrubber.tokens) tokens, \(scrubber.texts) texts, \(scrubber.ids) identifiers\n"
            }
            if isTaken { Terminal.err(text) } else { Terminal.out(text) }
            return
        }
        var writer = JSONWriter()
        writer.beginObject()
        if topics.count == 1 { writer.member("topic", topics[0]) }
        writer.key("topics")
        writer.beginArray()
        for topic in topics { writer.string(topic) }
        writer.endArray()
        writer.member("records", Int64(bar.done))
        writer.member("complete", outcome != .timedOut)
        if scrubs {
            writer.key("scrubbed")
            writer.beginObject()
            writer.member("tokens", Int64(scrubber.tokens))
            writer.member("texts", Int64(scrubber.texts))
            writer.member("ids", Int64(scrubber.ids))
            writer.endObject()
        }
        writer.key("seconds")
        writer.double(bar.seconds)
        writer.endObject()
        let json = String(decoding: writer.bytes, as: UTF8.self) + "\n"
        if isTaken { Terminal.err(json: json) } else { Terminal.out(json: json) }
    }
}

extension KafkaRecord {
    /// The headers in the form of a recording.
    var recordingHeaders: [RecordLine.Header] {
        var headers: [RecordLine.Header] = []
        forEachHeader { name, value in headers.append(RecordLine.Header(name: name, value: value.map { Array($0) })) }
        return headers
    }
}

/// Short names of topics: the keys of `kafka.topics`, with `-` or `_`.
enum TopicChoice {
    static func name(_ choice: String, in configuration: Configuration) -> String {
        let key = choice.replacing("-", with: "_")
        return configuration.kafka.topics.all.first { $0.key == key }?.name ?? choice
    }
}
