// SPDX-License-Identifier: Apache-2.0
import JSON

/// The effect of a draining giant group on one-to-one messages.
struct BesideReport: JudgedReport {
    struct Phase {
        var pushes: Int
        var seconds: Double
        /// Time from the group's message to its last push; nil without a group.
        var drainSeconds: Double?
        var workerMicros = 0.0
        /// The part of a processor that all workers used before the load began.
        var idleShare = 0.0
        /// CPU per push without the idle share, which workers use whether they push or not.
        var netMicros: Double { max(0, workerMicros - idleShare * seconds * 1e6 / Double(max(1, pushes))) }
        /// The largest growth of a worker's memory since it was ready.
        var growth = 0
        /// Latency by lane, from the slowest worker.
        var lanes: [String: Latency] = [:]
        /// Nil if not requested.
        var stages: BesideStages?
        /// Each message was pushed exactly once.
        var isComplete = false
    }

    struct Latency: Equatable {
        var count = 0
        var p50Ms = 0.0
        var p99Ms = 0.0
    }

    struct Round {
        var workers: Int
        var alone: Phase
        var beside: Phase

        /// Ratio for the lane of one-to-one messages; nil if none was delivered.
        var ratio: Double? {
            guard let alone = alone.lanes["direct"], let beside = beside.lanes["direct"], alone.p99Ms > 0 else {
                return nil
            }
            return beside.p99Ms / alone.p99Ms
        }
    }

    /// The bar for the growth of the 99th percentile.
    static let ratioMax = 2.0
    /// The bar for CPU per push: most expensive number of workers divided by the cheapest.
    static let spreadMax = 1.1
    /// The bar for a worker's memory growth with a group of half a million.
    static let growthMax = 64 << 20

    var members: Int
    var rate: Int
    var rounds: [Round] = []

    /// Ratio for the first number of workers.
    var ratio: Double? {
        BenchReport.median(rounds.filter { $0.workers == rounds.first?.workers }.compactMap(\.ratio))
    }

    /// CPU per push during the group's drain, by number of workers.
    private var micros: [(workers: Int, micros: Double, net: Double)] {
        Set(rounds.map(\.workers)).sorted().map { workers in
            let found = rounds.filter { $0.workers == workers }.map(\.beside)
            return (
                workers, BenchReport.median(found.map(\.workerMicros)) ?? 0,
                BenchReport.median(found.map(\.netMicros)) ?? 0
            )
        }
    }

    private var figures: [BenchFigure] {
        var figures = [
            BenchFigure("p99 with group / alone", ratio ?? .nan, bar: .atMost(Self.ratioMax)),
            BenchFigure(
                "memory that the group adds to a worker, MiB",
                Double(rounds.map(\.beside.growth).max() ?? 0) / 1_048_576,
                bar: .below(Double(Self.growthMax) / 1_048_576)),
        ]
        let costs = micros.map(\.micros)
        if let least = costs.min(), let most = costs.max(), costs.count > 1 {
            figures.append(
                BenchFigure(
                    "CPU per push, most / least expensive number of workers", least > 0 ? most / least : .nan,
                    bar: .atMost(Self.spreadMax)))
        }
        return figures
    }

    var succeeded: Bool {
        figures.allSatisfy(\.isMet) && rounds.allSatisfy { $0.alone.isComplete && $0.beside.isComplete }
    }

    // MARK: - Text

    var text: String {
        var text = "\n\(rate) messages a second one to one, alone and during one message to a group of \(members)\n"
        text += "    lane           pushes     p50 ms     p99 ms\n"
        for (index, round) in rounds.enumerated() {
            text += "  round \(index / max(1, micros.count) + 1), workers: \(round.workers)\n"
            for (name, phase) in [("alone", round.alone), ("beside", round.beside)] {
                for (lane, latency) in phase.lanes.sorted(by: { $0.key < $1.key }) {
                    text += "    " + BenchText.name("\(name) \(lane)", 14) + BenchText.column("\(latency.count)")
                    text += BenchText.column(BenchText.fixed(latency.p50Ms, digits: 1))
                    text += BenchText.column(BenchText.fixed(latency.p99Ms, digits: 1)) + "\n"
                }
                if !phase.isComplete {
                    text += "    ✗ some messages were not pushed exactly once (\(phase.pushes) pushes)\n"
                }
            }
            for (name, phase) in [("alone", round.alone), ("beside", round.beside)] {
                text += phase.stages?.text(name) ?? ""
            }
            let drain = round.beside.drainSeconds ?? 0
            text += "    the group drained in \(BenchText.fixed(drain, digits: 1)) s, "
            text += "\(BenchText.rounded(Double(members) / max(drain, 1e-3)))/s; "
            text += "worker \(BenchText.fixed(round.beside.workerMicros, digits: 2)) µs CPU per push, "
            text += "\(BenchText.fixed(round.beside.netMicros, digits: 2)) without idle use; "
            text += "memory + \(BenchText.megabytes(round.beside.growth)), alone + "
            text += "\(BenchText.megabytes(round.alone.growth))\n"
        }
        if micros.count > 1 {
            let each = micros.map { "\($0.workers): \(BenchText.fixed($0.micros, digits: 2)) µs" }
            let net = micros.map { "\($0.workers): \(BenchText.fixed($0.net, digits: 2)) µs" }
            text += "CPU per push by workers, median: \(each.joined(separator: ", ")); "
            text += "without idle use: \(net.joined(separator: ", "))\n"
        }
        for figure in figures {
            text += "\(figure.isMet ? "✓" : "✗") \(figure.name): \(BenchText.fixed(figure.value, digits: 2))"
            text += figure.bar.map { " (\($0.text))\n" } ?? "\n"
        }
        return text
    }

    // MARK: - JSON

    var json: String {
        JSONWriter.line { writer in
            writer.count("members", members)
            writer.count("rate", rate)
            writer.member("well", succeeded)
            writer.figure("p99_ratio", ratio)
            writer.objects("rounds", rounds) { writer, round in
                writer.count("workers", round.workers)
                writer.object("alone") { round.alone.write(to: &$0) }
                writer.object("beside") { round.beside.write(to: &$0) }
                writer.figure("p99_ratio", round.ratio)
            }
        }
    }
}

extension BesideReport.Phase {
    /// Reads the lanes from a worker's status page.
    mutating func take(_ page: JSONTree?) {
        for member in page?.members ?? [] {
            let found = BesideReport.Latency(
                count: Int(member.value["count"]?.int ?? 0), p50Ms: member.value["p50"]?.double ?? 0,
                p99Ms: member.value["p99"]?.double ?? 0)
            let before = lanes[member.key] ?? BesideReport.Latency()
            lanes[member.key] = BesideReport.Latency(
                count: before.count + found.count, p50Ms: max(before.p50Ms, found.p50Ms),
                p99Ms: max(before.p99Ms, found.p99Ms))
        }
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.count("pushes", pushes)
        writer.member("complete", isComplete)
        writer.figures([
            ("seconds", seconds), ("drain_seconds", drainSeconds), ("worker_cpu_us", workerMicros),
            ("worker_cpu_net_us", netMicros), ("idle_processors", idleShare),
        ])
        writer.count("memory_growth_bytes", growth)
        stages?.write(to: &writer)
        writer.object("lanes") { writer in
            for (lane, latency) in lanes.sorted(by: { $0.key < $1.key }) {
                writer.key(escaping: lane)
                writer.object { writer in
                    writer.count("count", latency.count)
                    writer.figures([("p50_ms", latency.p50Ms), ("p99_ms", latency.p99Ms)])
                }
            }
        }
    }
}
