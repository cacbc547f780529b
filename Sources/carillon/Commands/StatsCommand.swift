// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import EventLoop
import Processes
import Redis
import Worker

/// `carillon stats`: the numbers of an app.
struct StatsCommand: Command {
    static let spec = CommandSpec(
        name: "stats",
        summary: "numbers of an app: sent, accepted, arrived, opened, by hour, day, task, template or reason",
        details: """
            Reads the numbers of whole UTC hours, which all workers add up in Redis for stats.days days; tasks are counted by
            whole UTC days. Open rate = opened / alerts, arrival rate = arrived / alerts: alerts that APNs accepted, and
            the first checked report of each, counted for the hour of its push. The newest second is missing.

            exit codes: 0 done, 1 Redis is down, 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id", required: true),
            .value("from", "TIME", "like 2026-11-22T14:00Z, a date or Unix ms (24 hours before --to)"),
            .value("to", "TIME", "the end (now)"),
            .value("by", "WHAT", "hour, day, task, template or reason (hour)"),
            .flag("csv", "the rows as CSV"),
            .flag("json", "one object with all numbers, as GET /stats has it"),
        ])

    private let path: String
    private let app: String
    private let fromMs: Int64
    private let toMs: Int64
    private let by: StatisticsTable.By
    private let isJSON: Bool
    private let isCSV: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        app = arguments.string("app") ?? ""
        toMs = try Self.time(arguments, "to") ?? Loop.wallMs()
        fromMs = try Self.time(arguments, "from") ?? toMs - 86_400_000
        isJSON = arguments.has("json")
        isCSV = arguments.has("csv")
        if isJSON, isCSV { throw Arguments.UsageError(message: "--json and --csv cannot be combined") }
        if fromMs >= toMs { throw Arguments.UsageError(message: "--from must be before --to") }
        let word = arguments.string("by") ?? "hour"
        guard let by = StatisticsTable.By(rawValue: word) else {
            throw Arguments.UsageError(
                message: "--by needs hour, day, task, template or reason; \"\(word)\" is none of these")
        }
        self.by = by
    }

    private static func time(
        _ arguments: Arguments, _ option: String
    ) throws(Arguments.UsageError) -> Int64? {
        guard let text = arguments.string(option) else { return nil }
        guard let ms = InstantText.milliseconds(text) else {
            throw Arguments.UsageError(
                message: "--\(option) needs a time like 2026-11-22T14:00Z, a date or Unix ms; \"\(text)\" is not one")
        }
        return ms
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        guard AppChoice.find(app, in: configuration, for: "stats") != nil else { return .usage }
        guard let store = await RedisOpening.open(configuration, for: "stats") else { return .failed }
        let code: ExitCode
        do throws(RedisFault) {
            let report = try await StatisticsReads(store).statistics(app: app, fromMs: fromMs, toMs: toMs)
            print(report)
            code = .done
        } catch {
            Terminal.err("carillon stats: Redis: \(error)\n")
            code = .failed
        }
        await store.close()
        return code
    }

    private func print(_ report: StatisticsReport) {
        if isJSON {
            return Terminal.out(json: report.json)
        }
        let table = StatisticsTable(report, by: by)
        Terminal.out(isCSV ? TerminalText(lines: table.csv) : table.people)
    }
}
