// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Kafka
import Recording
import Telemetry
import Worker

/// `carillon dlq`: shows refused records and writes them back.
struct DLQCommand: Command {
    static let spec = CommandSpec(
        name: "dlq", summary: "list, show, redrive: dead letters by cause; back to where they came from",
        details: """
            Reads the dead-letter topic of the configuration to its present end, without joining a group.

            list     counts the records by cause, topic and app, with their ages and the number that the worker would accept today.
            show     prints records in full: place, cause, key, headers and content. They contain message texts and tokens.
            redrive  writes records to their original topics (carillon-topic), with key and content unchanged, without the worker's
                     headers. The dead letters stay in their topic until its retention removes them.

            redrive leaves records that the worker would refuse again, unless --bad-too is given: correct the configuration or the
            producer first, then redrive. Headers lead only to topics that the worker reads; --to names another topic. A repeated
            redrive is harmless after the first one was processed: workers skip finished records. With --reason or --at, redrive
            writes at once; without either it prints its plan and needs --yes.

            --reason takes words of the cause (unknown app, or unknown_app), or the rule that refuses the record today, as
            carillon_dlq_records_total names it.

            exit codes: 0 done, 1 Kafka is down, there was nothing to show, or not all was written; 64 bad usage,
            78 bad configuration
            """,
        verbs: ["list", "show", "redrive"],
        options: [
            CommandSpec.config,
            .value("reason", "REASON", "only those that were refused for it"),
            .value("topic", "TOPIC", "only those that came from there: a topic's name or a key of kafka.topics"),
            .value("app", "APP", "only this app's"),
            .value("from", "POINT", "where to begin (earliest): time:MS, 2026-11-22T14:05:00Z, offset:N"),
            .value("until", "POINT", "where to end: the first that is left out"),
            .value("at", "PARTITION:OFFSET", "a single one by its place in the dead-letter topic (show, redrive)"),
            .value("limit", "N", "at most N, the oldest first (show: 10; redrive: all)"),
            .value("to", "TOPIC", "where to write them, in place of where they came from (redrive)"),
            .flag("bad-too", "also records that would be refused again (redrive)"),
            .flag("dry-run", "prints the plan and changes nothing (redrive)"),
            .flag("yes", "does it, whatever was selected (redrive)"),
            CommandSpec.json,
        ])

    private enum Verb: String {
        case list, show, redrive
    }

    private let path: String
    private let verb: Verb
    private let reason: String?
    private let topic: String?
    private let target: String?
    private let app: String?
    private let start: KafkaTopicReader.Start
    private let end: KafkaMergedReader.End
    private let place: DeadLetterReading.Selection.Place?
    private let limit: Int
    private let takesBad: Bool
    private let isDryRun: Bool
    private let isSure: Bool
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        verb = arguments.verb.flatMap { Verb(rawValue: $0) } ?? .list
        reason = arguments.string("reason")
        topic = arguments.string("topic")
        target = arguments.string("to")
        app = arguments.string("app")
        takesBad = arguments.has("bad-too")
        isSure = arguments.has("yes")
        isJSON = arguments.has("json")
        start = try InputPoint.read(arguments, "from")?.start ?? .earliest
        let until = try InputPoint.read(arguments, "until")
        guard until != .earliest else { throw Arguments.UsageError(message: "--until earliest would leave nothing") }
        end = until?.end ?? .present
        limit = try arguments.int("limit", default: verb == .show ? 10 : Int.max, in: 1...Int.max)
        place = try Self.place(arguments.string("at"))
        isDryRun = arguments.has("dry-run")
        if verb != .redrive {
            for name in ["to", "bad-too", "dry-run", "yes"] where arguments.has(name) {
                throw Arguments.UsageError(message: "--\(name) goes with redrive")
            }
        }
        if isDryRun, isSure { throw Arguments.UsageError(message: "--dry-run and --yes exclude each other") }
        if reason?.isEmpty == true { throw Arguments.UsageError(message: "--reason needs a word") }
    }

    private static func place(_ text: String?) throws(Arguments.UsageError) -> DeadLetterReading.Selection.Place? {
        guard let text else { return nil }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0,
            offset >= 0
        else { throw Arguments.UsageError(message: "--at needs PARTITION:OFFSET, such as 0:17; not \"\(text)\"") }
        return DeadLetterReading.Selection.Place(partition: partition, offset: offset)
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        var selection = DeadLetterReading.Selection(start: start, end: end, place: place, limit: limit)
        selection.choice = DeadLetterChoice(
            reason: reason, topic: topic.map { TopicChoice.name($0, in: configuration) }, app: app)
        let reading = DeadLetterReading(selection, configuration)
        do {
            let stop = StopFlag(try EndSignals())
            switch verb {
            case .list: return try list(reading, stop)
            case .show: return try show(reading, stop)
            case .redrive: return try redrive(reading, configuration, stop)
            }
        } catch let fault as ReplayFault {
            Terminal.err("carillon dlq: \(fault.message)\n")
        } catch {
            Terminal.err("carillon dlq: Kafka at \(configuration.kafka.brokers): \(error)\n")
        }
        return .failed
    }

    private func list(_ reading: DeadLetterReading, _ stop: StopFlag) throws -> ExitCode {
        var tally = DeadLetterTally()
        var bar = ProgressBar("reading", total: nil)
        let outcome = try reading.read(stop: stop) { item in
            tally.add(
                item.note, app: item.app, atMs: item.atMs, isAccepted: item.isAccepted,
                rule: item.judgement.rule)
            bar.advance(to: tally.count)
        }
        bar.clear()
        Terminal.out(
            asJSON: isJSON, json: Unprintable.escapedJSON(DeadLetterText.json(tally)),
            text: DeadLetterText.people(tally, topic: reading.topic, nowMs: Loop.wallMs()))
        return ending(outcome)
    }

    private func show(_ reading: DeadLetterReading, _ stop: StopFlag) throws -> ExitCode {
        var count = 0
        let outcome = try reading.read(stop: stop) { item in
            count += 1
            Terminal.out(
                asJSON: isJSON, json: Unprintable.escapedJSON(DeadLetterText.json(item)),
                text: DeadLetterText.people(item, topic: reading.topic, nowMs: Loop.wallMs()))
        }
        if count == 0 { Terminal.err("carillon dlq: \(reading.topic) contains none of them\n") }
        return count == 0 ? .failed : ending(outcome)
    }

    private func redrive(
        _ reading: DeadLetterReading, _ configuration: Configuration, _ stop: StopFlag
    ) throws -> ExitCode {
        let isNamed = reason != nil || place != nil
        var settings = DeadLetterRedrive.Settings(
            target: target.map { TopicChoice.name($0, in: configuration) }, takesBad: takesBad)
        settings.isDryRun = isDryRun || !(isSure || isNamed)
        let report = try DeadLetterRedrive(settings, reading, configuration, stop: stop).run()
        Terminal.out(
            asJSON: isJSON, json: Unprintable.escapedJSON(DeadLetterText.json(report)),
            text: DeadLetterText.people(report))
        if settings.isDryRun, !isDryRun, report.wantedCount > 0 {
            Terminal.err("nothing was written: give --yes, or name a --reason\n")
        }
        return report.succeeded ? .done : .failed
    }

    private func ending(_ outcome: KafkaTopicReader.Outcome) -> ExitCode {
        guard outcome == .timedOut else { return .done }
        Terminal.err("INCOMPLETE: nothing came for ten seconds; are all brokers up?\n")
        return .failed
    }
}
