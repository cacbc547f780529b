// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Processes
import PushCore
import Worker

/// `carillon check`: checks everything that a worker needs at once, and reports all problems together.
struct CheckCommand: Command {
    static let spec = CommandSpec(
        name: "check", summary: "configuration, credentials, Kafka, Redis, APNs: every problem, each with its place",
        details: """
            Checks the configuration and its files. Without --offline it also asks Kafka for the topics and this user's read rights,
            asks every Redis server, node and Sentinel for its settings and this user's rights, and connects to APNs for every app,
            credential set and environment in use. With --acl it prints the rights that a worker needs in both. It creates, changes and sends
            nothing. Problems are printed first and, below the rest, again. With --probe it sends one push per credential, environment and
            topic to a token of no device: the answer shows whether APNs accepts the credential (400 BadDeviceToken), or whether key,
            environment or topic is wrong.

            --print checks nothing. It prints the values in effect, from the file, the environment and the defaults.

            exit codes: 0 all well (warnings too), 1 something is down or missing (with --strict: or a warning), 64 bad usage,
            78 bad configuration
            """,
        options: [
            CommandSpec.config, .flag("offline", "configuration, credential files and clock only"),
            .flag("probe", "also ask APNs whether it accepts each credential, environment and topic"),
            .flag("acl", "also print the rights that a worker needs in Kafka and Redis (--json always has them)"),
            .flag("strict", "warnings count as problems"),
            .flag("print", "the configuration in effect as YAML, without secrets, in place of all checks"),
            CommandSpec.json,
        ])

    private let path: String
    private let isOffline: Bool
    private let probes: Bool
    private let showsRights: Bool
    private let isStrict: Bool
    private let isPrinting: Bool
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        isOffline = arguments.has("offline")
        probes = arguments.has("probe")
        showsRights = arguments.has("acl")
        isStrict = arguments.has("strict")
        isPrinting = arguments.has("print")
        isJSON = arguments.has("json")
        if isOffline, probes { throw Arguments.UsageError(message: "--probe has no effect with --offline") }
    }

    func run() async -> ExitCode {
        if isPrinting { return printEffective() }
        var findings: [Finding] = []
        var isBadConfiguration = false
        var loaded: Configuration?
        switch Configuration.load(path: path) {
        case .failure(let fault):
            isBadConfiguration = true
            findings += fault.problems.map { Finding(problem: $0, subject: "configuration") }
        case .success(let configuration):
            loaded = configuration
            let apps = configuration.apps.map(\.policy.id).joined(separator: ", ")
            findings.append(Finding(.ok, "configuration", path, "apps: \(apps)"))
            findings += configuration.warnings.map { Finding(.warn, problem: $0, subject: "configuration") }
            let problems = configuration.credentialProblems()
            isBadConfiguration = !problems.isEmpty && !configuration.hasUsableApp
            findings += problems.map { Finding(problem: $0, subject: "credentials") }
            findings.append(Checks.shards(configuration))
            findings += Checks.topics(configuration) + Checks.templates(configuration)
            findings += Checks.genericTexts(configuration) + Checks.credentials(configuration)
            findings +=
                Checks.secretFiles(configuration) + Checks.weakLinks(configuration) + Checks.pages(configuration)
        }
        findings += [Checks.clock(), Checks.zones()]
        if let loaded { findings += isOffline ? Checks.kafkaSignIn(loaded) : await online(loaded) }
        if loaded == nil, !isOffline {
            findings.append(
                Finding(.warn, "servers", "Kafka, Redis, APNs", "not asked: the configuration is not usable"))
        }
        Terminal.out(
            asJSON: isJSON, json: findings.map(\.json).joined(), text: Finding.table(findings, showsRights: showsRights)
        )
        if isBadConfiguration { return .configuration }
        return findings.contains { $0.grade == .fail || isStrict && $0.grade == .warn } ? .failed : .done
    }

    private func printEffective() -> ExitCode {
        switch Configuration.effective(path: path) {
        case .success(let effective):
            Terminal.out(asJSON: isJSON, json: effective.json + "\n", text: TerminalText(lines: effective.text))
            return .done
        case .failure(let fault):
            for problem in fault.problems { Terminal.err("\(problem)\n") }
            return .configuration
        }
    }

    private func online(_ configuration: Configuration) async -> [Finding] {
        func showProgress(_ what: String) {
            guard Terminal.isInteractive else { return }
            Terminal.clearLine()
            Terminal.err("asking \(what) …")
        }
        defer { if Terminal.isInteractive { Terminal.clearLine() } }
        showProgress("Kafka")
        var findings = KafkaCheck(configuration: configuration).findings()
        if !findings.contains(where: { $0.grade == .fail }) {
            findings += KeyCheck(configuration: configuration).findings()
        }
        showProgress("Redis")
        findings += await RedisCheck(section: configuration.redis).findings()
        for app in configuration.apps {
            showProgress("APNs for \(app.policy.id)")
            findings += await APNsCheck(app: app, probes: probes).findings()
        }
        return findings
    }
}

/// The result of one check.
struct Finding {
    enum Grade: String {
        case ok, warn, fail
        /// A weak link that the operator accepted by name.
        case waived
    }

    var grade: Grade
    /// The subject: `kafka`, `redis` and so on.
    var subject: String
    /// The object: an address, a topic, a place in a file.
    var place: String
    /// The result, with the cure if it is a problem.
    var text: String

    init(_ grade: Grade, _ subject: String, _ place: String, _ text: String) {
        self.grade = grade
        self.subject = subject
        self.place = place
        self.text = text
    }

    init(_ grade: Grade = .fail, problem: Problem, subject: String) {
        let line = problem.line.map { ":\($0)" } ?? ""
        self.init(grade, subject, problem.source + line, problem.text)
    }

    /// Rights to copy, not a result.
    private var isRights: Bool { grade == .ok && place == "rights" }

    /// The longest table in which nobody misses a problem above.
    private static let screenRows = 12

    /// Problems first, and again at the end of a long table.
    static func table(_ findings: [Finding], showsRights: Bool) -> TerminalText {
        let shown = findings.filter { showsRights || !$0.isRights }
        let problems = shown.filter { $0.grade == .fail }
        let rest = shown.filter { $0.grade != .fail }
        let width = (shown.map(\.subject.count).max() ?? 0) + 2
        let places = min(44, (shown.map(\.place.count).max() ?? 0)) + 2
        func rows(_ findings: [Finding]) -> TerminalText {
            findings.map { $0.row(width: width, places: places) }.joined(separator: "")
        }
        let text = rows(problems) + rows(rest)
        let warnings = shown.count { $0.grade == .warn }
        if problems.isEmpty, warnings == 0 { return text + Style.green("all well") + "\n" }
        let again: TerminalText = rest.count > screenRows && !problems.isEmpty ? "\n" + rows(problems) : ""
        return text + again + "\(counted(problems.count, "problem")), \(counted(warnings, "warning"))\n"
    }

    private func row(width: Int, places: Int) -> TerminalText {
        let mark =
            switch grade {
            case .ok: Style.green("ok  ")
            case .warn: Style.yellow("warn")
            case .waived: Style.yellow("weak")
            case .fail: Style.red("FAIL")
            }
        let place = Style.padded("\(place)", to: places)
        return
            "\(mark)  \(Style.padded("\(subject)", to: width))\(place)\(place.text.hasSuffix(" ") ? "" : "  ")\(text)\n"
    }

    var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("grade", grade.rawValue)
        writer.member("check", subject)
        writer.member("place", place)
        writer.member("text", text)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
