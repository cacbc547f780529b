// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Kafka
import Telemetry
import Worker

/// `carillon broker`: a Kafka-protocol broker for tests, with faults by command.
struct BrokerCommand: Command {
    static let spec = CommandSpec(
        name: "broker", summary: "a Kafka-protocol broker for tests, with faults by command",
        details: """
            Runs until a signal or `quit`. It is librdkafka's mock cluster on 127.0.0.1: groups, offsets and idempotent writes work;
            nothing is stored on disk, and a partition keeps its last 5 MiB. Members join and leave in rounds of session.timeout.ms;
            the command prints the value to set.

            \(BrokerOrder.help)

            exit codes: 0 ended, 64 bad usage
            """,
        options: [
            .value("brokers", "N", "how many brokers (1)"),
            .value("topic", "NAME:PARTITIONS", "a topic to create", repeatable: true),
            .value("default-topics", "PARTITIONS", "creates all topics of Config/carillon.yaml by their default names"),
            CommandSpec.json,
        ])

    private let brokers: Int
    private var topics: [(name: String, partitions: Int)] = []
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        brokers = try arguments.int("brokers", default: 1, in: 1...16)
        isJSON = arguments.has("json")
        for text in arguments.strings("topic") {
            guard let colon = text.lastIndex(of: ":"), colon != text.startIndex,
                let count = Int(text[text.index(after: colon)...]), (1...1000).contains(count)
            else {
                throw Arguments.UsageError(
                    message: "--topic needs NAME:PARTITIONS, such as im.events:4; not \"\(text)\"")
            }
            topics.append((String(text[..<colon]), count))
        }
        guard arguments.has("default-topics") else { return }
        let count = try arguments.int("default-topics", default: 4, in: 1...1000)
        for (_, name) in Configuration.Topics().all where !topics.contains(where: { $0.name == name }) {
            topics.append((name, count))
        }
    }

    func run() async -> ExitCode {
        do {
            let signals = try EndSignals()
            let ending = Ending()
            signals.onFirst { ending.resolve(.done) }
            let broker = try MockBroker(brokers: brokers)
            for topic in topics { try broker.createTopic(topic.name, partitions: topic.partitions) }
            Terminal.out(asJSON: isJSON, json: json(broker), text: text(broker))
            let isJSON = isJSON
            startReading { line in
                guard let answer = BrokerOrder.perform(line, on: broker, isJSON: isJSON) else {
                    ending.resolve(.done)
                    return false
                }
                if answer.isEmpty { return true }
                Terminal.out(asJSON: isJSON, json: answer + "\n", text: TerminalText(lines: answer + "\n"))
                return true
            }
            return await ending.value()
        } catch {
            Terminal.err("carillon broker: \(error)\n")
            return .failed
        }
    }

    /// Commands arrive on a separate thread, because reading standard input blocks. End of input ends only this thread.
    private func startReading(_ take: @escaping @Sendable (String) -> Bool) {
        let isReading = runDetached { while let line = readLine(), take(line) {} }
        if !isReading { Terminal.err("carillon broker: no thread to read standard input: commands are not read\n") }
    }

    private func text(_ broker: MockBroker) -> TerminalText {
        var text: TerminalText = "\(Style.bold("bootstrap"))  \(broker.bootstrap)\n"
        for topic in topics { text += "topic      \(topic.name), \(topic.partitions) partitions\n" }
        text +=
            Style.dim(
                "# into the configuration: this broker's groups wait for sessions, and its fetches for the whole wait:")
            + "\n"
        text += "kafka:\n  brokers: \(broker.bootstrap)\n"
        text += "  options: { session.timeout.ms: 6000, heartbeat.interval.ms: 500, fetch.wait.max.ms: 10 }\n"
        return text + Style.dim("faults by command on standard input: try `help`; ctrl-C or `quit` ends it") + "\n"
    }

    private func json(_ broker: MockBroker) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("bootstrap", broker.bootstrap)
        writer.member("brokers", Int64(broker.count))
        writer.key("topics")
        writer.beginArray()
        for topic in topics {
            writer.beginObject()
            writer.member("name", topic.name)
            writer.member("partitions", Int64(topic.partitions))
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}

/// One command line for faults.
enum BrokerOrder {
    static let help = """
        orders, one a line on standard input:
          down B             broker B closes its connections and refuses new ones
          up B               and is there again
          rtt B MS           broker B answers MS milliseconds later
          error KIND CODE…   the next requests of that kind fail with these Kafka error codes, in order
          clear KIND         forgets what `error` left
          leader T P B       partition P of topic T is led by broker B
          coordinator G B    group G is coordinated by broker B
          quit               ends the broker
        kinds: \(kinds.map(\.name).joined(separator: " "))
        """

    private static var kinds: [(name: String, kind: MockBroker.RequestKind)] {
        [
            ("produce", .produce), ("fetch", .fetch), ("list-offsets", .listOffsets), ("metadata", .metadata),
            ("commit", .offsetCommit), ("offset-fetch", .offsetFetch), ("find-coordinator", .findCoordinator),
            ("join", .joinGroup), ("heartbeat", .heartbeat),
        ]
    }

    /// - Returns: the answer, empty for a blank line; nil ends the broker.
    static func perform(_ line: String, on broker: MockBroker, isJSON: Bool) -> String? {
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard let order = words.first else { return "" }
        if order == "quit" { return nil }
        if order == "help" { return isJSON ? answer(line, nil) : help }
        var fault: String?
        do throws(KafkaFault) {
            fault = try perform(order, Array(words.dropFirst()), on: broker)
        } catch {
            fault = error.description
        }
        return isJSON ? answer(line, fault) : fault.map { "error: \($0)" } ?? "ok: \(words.joined(separator: " "))"
    }

    /// - Returns: nil on success, else the error.
    private static func perform(
        _ order: String, _ rest: [String], on broker: MockBroker
    ) throws(KafkaFault) -> String? {
        let numbers = rest.map { Int32($0).map(Int.init) }
        switch (order, rest.count) {
        case ("down", 1), ("up", 1), ("rtt", 2):
            guard let id = numbers[0], (1...broker.count).contains(id) else {
                return "\"\(rest[0])\" is not a broker; there are 1 to \(broker.count)"
            }
            if order == "down" { try broker.setDown(broker: id) }
            if order == "up" { try broker.setUp(broker: id) }
            guard order == "rtt" else { return nil }
            guard let ms = numbers[1], ms >= 0 else { return "\"\(rest[1])\" is not a number of milliseconds" }
            try broker.setRTT(broker: id, milliseconds: ms)
        case ("error", 2...), ("clear", 1):
            guard let kind = kinds.first(where: { $0.name == rest[0] })?.kind else {
                return "\"\(rest[0])\" is not a kind of request; there are \(kinds.map(\.name).joined(separator: " "))"
            }
            if order == "clear" {
                broker.clearErrors(api: kind)
                return nil
            }
            let codes = rest.dropFirst().compactMap { Int32($0) }
            guard codes.count == rest.count - 1 else { return "error codes are numbers, such as 7 (request timed out)" }
            broker.pushErrors(api: kind, codes)
        case ("leader", 3):
            guard let partition = numbers[1], let id = numbers[2] else { return "leader needs TOPIC PARTITION BROKER" }
            try broker.setLeader(topic: rest[0], partition: partition, broker: id)
        case ("coordinator", 2):
            guard let id = numbers[1] else { return "coordinator needs GROUP BROKER" }
            try broker.setCoordinator(group: rest[0], broker: id)
        default:
            return "unknown command; `help` lists the commands"
        }
        return nil
    }

    private static func answer(_ line: String, _ fault: String?) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("order", line)
        writer.member("ok", fault == nil)
        writer.member("error", ifPresent: fault)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
