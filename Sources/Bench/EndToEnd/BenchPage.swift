// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Recording

/// A bench's report as one self-contained HTML page.
struct BenchPage {
    private let report: BenchReport
    private let comparison: ReportComparison?

    init(_ report: BenchReport, comparedBy comparison: ReportComparison? = nil) {
        self.report = report
        self.comparison = comparison
    }

    /// The figures that two runs are compared by.
    static let figures: [ReportComparison.Figure] = [
        .init("a second", "throughput", "per_s"), .init("worker, µs", "throughput", "worker_cpu_us"),
        .init("redis-server, µs", "throughput", "redis_cpu_us"),
        .init("simulator, µs", "throughput", "simulator_cpu_us"),
        .init("h2load, µs", "h2load", "cpu_us"), .init("worker in h2load's requests", "worker_per_h2load"),
        .init("latency p50, ms", "latency", "p50_ms"), .init("latency p99, ms", "latency", "p99_ms"),
        .init("latency p99.9, ms", "latency", "p999_ms"), .init("bytes of a held push", "memory", "bytes_each"),
    ]

    private var what: String { report.settings.sendsNothing ? "member" : "push" }

    var html: String {
        let count = ReportPage.number(report.settings.recipients)
        let verdict =
            report.succeeded
            ? "\(count) \(report.settings.sendsNothing ? "members" : "pushes") a round, each done once"
            : "not every push was done once"
        return ReportPage.html(
            title: "carillon bench", heading: "carillon bench", verdict: verdict, succeeded: report.succeeded,
            origin: report.origin,
            body: [tiles, comparison?.html(report.json) ?? "", stages, redis, commands, rounds, latency].joined(
                separator: "\n"))
    }

    private var tiles: String {
        let throughput = report.throughput
        func median(_ value: (ThroughputPhase.Outcome) -> Double) -> Double {
            BenchReport.median(throughput.map(value)) ?? 0
        }
        var tiles = [
            ("a second, on one shard", ReportPage.number(Int(median(\.perSecond).rounded()))),
            ("worker, µs per \(what)", Self.micros(median(\.workerMicros))),
            ("redis-server, µs per \(what)", Self.micros(median { $0.micros($0.redisNanos) })),
        ]
        if report.settings.shards != 1 { tiles[0].0 = "a second, on \(report.settings.shards) shards" }
        if let ratio = report.ratio { tiles.append(("worker in h2load's requests", Self.micros(ratio))) }
        if !report.stages.isEmpty {
            tiles.append(("commands to Redis per \(what)", Self.micros(report.stages.sum.commands ?? 0)))
        }
        if let allocations = report.stages.allocations {
            tiles.append(("allocations per \(what)", ReportPage.decimal(allocations)))
        }
        tiles.append(("memory, peak", BenchText.megabytes(throughput.map(\.peakBytes).max() ?? 0)))
        return ReportPage.tiles(tiles)
    }

    private var stages: String {
        guard !report.stages.isEmpty else { return "" }
        let rows = report.stages.rows.compactMap { row in
            row.worker.map { (name: row.name, value: $0, text: "\(Self.micros($0)) µs") }
        }
        return ReportPage.section("Worker's processor time per \(what), by stage", ReportPage.bars(rows))
    }

    private var redis: String {
        guard !report.stages.isEmpty else { return "" }
        let rows = report.stages.rows.compactMap { row in
            row.redis.map { micros in
                let commands = row.commands.map { ", \(Self.micros($0)) commands" } ?? ""
                return (name: row.name, value: micros, text: "\(Self.micros(micros)) µs\(commands)")
            }
        }
        return ReportPage.section(
            "redis-server's processor time per \(what), by stage", ReportPage.bars(rows, colour: "two"))
    }

    private var commands: String {
        guard !report.stages.commands.isEmpty else { return "" }
        let rows = report.stages.commands.map { [$0.name, Self.micros($0.calls), Self.micros($0.micros)] }
        return ReportPage.section(
            "redis-server by command, per \(what)", ReportPage.table([["command", "calls", "µs"]] + rows))
            + "<p class=\"note\">Commands within a script are part of the script’s time too.</p>"
    }

    private var rounds: String {
        let rows = report.throughput.enumerated().map { index, outcome in
            [
                "\(index + 1)", ReportPage.number(Int(outcome.perSecond.rounded())), Self.micros(outcome.workerMicros),
                Self.micros(outcome.micros(outcome.redisNanos)), Self.micros(outcome.micros(outcome.simulatorNanos)),
                report.h2loadMicros(index).map(Self.micros) ?? "–",
            ]
        }
        let heads = ["round", "a second", "worker µs", "redis-server µs", "simulator µs", "h2load µs"]
        return ReportPage.section("Rounds", ReportPage.table([heads] + rows))
    }

    private var latency: String {
        guard let latency = report.latency else { return "" }
        let rows = [("p50", latency.p50Ms), ("p99", latency.p99Ms), ("p99.9", latency.p999Ms)].map { name, ms in
            (name: name, value: ms ?? 0, text: ms.map { "\(Self.micros($0)) ms" } ?? "none")
        }
        let title = "From Kafka’s timestamp to APNs’ answer, at \(BenchText.rounded(latency.perSecond)) a second"
        return ReportPage.section(title, ReportPage.bars(rows, colour: "three"))
    }

    private static func micros(_ value: Double) -> String { BenchText.fixed(value, digits: 2) }
}
