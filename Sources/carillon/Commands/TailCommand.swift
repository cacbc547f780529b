// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Kafka
import Worker

/// `carillon tail`: shows outcomes as they are recorded.
struct TailCommand: Command {
    static let spec = CommandSpec(
        name: "tail", summary: "outcomes as they are recorded, by app, user, verdict and reason",
        details: """
            Reads push.results from now on, without a group: it commits nothing and disturbs no worker. One line per outcome: time,
            app, user and device, verdict, reason, badge, time since the event, message. With --json one record per line, as it is in
            the topic. It runs until ctrl-C or --limit.

            exit codes: 0 done, 1 Kafka is down, 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("app", "APP", "only this app"),
            .value("user", "UID", "only this user"),
            .value("verdict", "VERDICT", "only this one, such as rejected", repeatable: true),
            .value("reason", "REASON", "only this one, such as no_token or Unregistered", repeatable: true),
            .value("limit", "N", "ends after N outcomes"),
            CommandSpec.json,
        ])

    private let path: String
    private let choice: OutcomeChoice
    private let limit: Int
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        choice = OutcomeChoice(
            app: arguments.string("app"), uid: arguments.string("user"), verdicts: arguments.strings("verdict"),
            reasons: arguments.strings("reason"))
        limit = try arguments.int("limit", default: Int.max, in: 1...Int.max)
        isJSON = arguments.has("json")
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        if let app = choice.app, AppChoice.find(app, in: configuration, for: "tail") == nil { return .usage }
        let topic = configuration.kafka.topics.results
        do {
            let stop = StopFlag(try EndSignals())
            let tail = try KafkaTail(configuration.kafka.client(id: "carillon-tail"), topic: topic)
            Terminal.err("\(topic), from now on; ctrl-C ends it\n")
            follow(tail, until: stop)
            return .done
        } catch {
            Terminal.err("carillon tail: Kafka at \(configuration.kafka.brokers): \(error)\n")
            return .failed
        }
    }

    private static let batch = 500
    private static let pauseMs: UInt32 = 50

    private func follow(_ tail: KafkaTail, until stop: StopFlag) {
        var left = limit
        while !stop.isSet, left > 0 {
            let count = tail.take(max: Self.batch) { record in
                guard left > 0, let value = record.value, let outcome = RecordedOutcome(value),
                    choice.takes(outcome)
                else { return }
                left -= 1
                if isJSON {
                    Terminal.out(json: String(decoding: value, as: UTF8.self) + "\n")
                } else {
                    Terminal.out(outcome.line)
                }
            }
            if count == 0 { StopFlag.pause(milliseconds: Self.pauseMs) }
        }
    }
}

/// Which outcomes to show. Empty lists and nil choose all.
struct OutcomeChoice {
    var app: String?
    var uid: String?
    var verdicts: [String] = []
    var reasons: [String] = []

    func takes(_ outcome: RecordedOutcome) -> Bool {
        (app == nil || app == outcome.app) && (uid == nil || uid == outcome.uid)
            && (verdicts.isEmpty || verdicts.contains(outcome.verdict))
            && (reasons.isEmpty || reasons.contains(outcome.reason))
    }
}

/// A record of `push.results` (contract section 3).
struct RecordedOutcome {
    var app: String
    var uid: String
    var device: String?
    var verdict: String
    var reason: String
    var badge: Int64?
    var latencyMs: Int64
    var message: String
    var atMs: Int64

    /// - Returns: nil for anything else.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let tree = try? JSONTree(parsing: Array(bytes)), let app = tree["app"]?.string,
            let uid = tree["uid"]?.string, let verdict = tree["verdict"]?.string, let reason = tree["reason"]?.string,
            let atMs = tree["at_ms"]?.int
        else { return nil }
        self.app = app
        self.uid = uid
        self.verdict = verdict
        self.reason = reason
        self.atMs = atMs
        device = tree["device"]?.string
        badge = tree["badge"]?.int
        latencyMs = tree["latency_ms"]?.int ?? 0
        message = tree["msg_id"]?.string ?? tree["event_id"]?.string ?? "-"
    }

    var line: TerminalText {
        let whom = device.map { "\(uid)/\($0)" } ?? uid
        let badge: TerminalText = badge.map { "badge \($0)  " } ?? ""
        return """
            \(Style.dim("\(TimeText.iso(atMs, milliseconds: true))"))  \(Style.padded("\(app)", to: 10))\
            \(Style.padded("\(whom)", to: 28))\(colored)\(Style.padded("\(reason)", to: 18))\(badge)\
            \(Style.dim("\(latencyMs) ms  \(message)"))

            """
    }

    private var colored: TerminalText {
        let padded = Style.padded("\(verdict)", to: 12)
        switch verdict {
        case "accepted", "online": return Style.green(padded)
        case "rejected": return Style.red(padded)
        default: return Style.yellow(padded)
        }
    }
}
