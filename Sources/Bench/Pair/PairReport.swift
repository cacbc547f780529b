// SPDX-License-Identifier: Apache-2.0
import JSON
import Processes

/// The costs of two workers under the same load, round by round.
struct PairReport: JudgedReport {
    /// Both sides of one round.
    struct Round {
        var this: ThroughputPhase.Outcome
        var other: ThroughputPhase.Outcome
    }

    /// The compared value: CPU per push, or the ratio of two CPU figures of one side.
    enum Figure: String, CaseIterable {
        case worker
        case redis = "redis-server"
        case simulator
        case workerPerRedis = "worker / redis-server"
        case workerPerSimulator = "worker / simulator"

        /// Microseconds for the first three; nil if the divisor is zero.
        func value(_ outcome: ThroughputPhase.Outcome) -> Double? {
            let redis = outcome.micros(outcome.redisNanos)
            let simulator = outcome.micros(outcome.simulatorNanos)
            return switch self {
            case .worker: outcome.workerMicros
            case .redis: redis
            case .simulator: simulator
            case .workerPerRedis: redis > 0 ? outcome.workerMicros / redis : nil
            case .workerPerSimulator: simulator > 0 ? outcome.workerMicros / simulator : nil
            }
        }
    }

    /// Median, smallest and largest value of the rounds.
    struct Spread: Equatable {
        var median: Double
        var lowest: Double
        var highest: Double

        /// - Returns: nil for an empty list.
        init?(_ values: [Double]) {
            guard let median = BenchReport.median(values), let lowest = values.min(), let highest = values.max() else {
                return nil
            }
            self.median = median
            self.lowest = lowest
            self.highest = highest
        }
    }

    var settings: BenchSettings
    var rounds: [Round] = []

    /// The simulator has no work if nothing is sent.
    private var figures: [Figure] {
        settings.sendsNothing ? [.worker, .redis, .workerPerRedis] : Figure.allCases
    }

    private func values(_ figure: Figure, _ side: KeyPath<Round, ThroughputPhase.Outcome>) -> [Double] {
        rounds.compactMap { figure.value($0[keyPath: side]) }
    }

    /// This program's value divided by the other's, round by round.
    func ratios(_ figure: Figure) -> [Double] {
        rounds.compactMap { round in
            guard let this = figure.value(round.this), let other = figure.value(round.other), other > 0 else {
                return nil
            }
            return this / other
        }
    }

    /// Every push arrived exactly once on both sides.
    var succeeded: Bool { rounds.allSatisfy { isComplete($0.this) && isComplete($0.other) } }

    private func isComplete(_ outcome: ThroughputPhase.Outcome) -> Bool {
        outcome.pushes == settings.pushes && outcome.acceptedByServer == settings.pushes
    }

    // MARK: - Text

    private static let nameWidth = 24
    private static let columnWidth = 10

    var text: String {
        let what = settings.sendsNothing ? "denied member" : "push"
        let groups = settings.group.map { " in groups of \($0)" } ?? ""
        var text = "\nthis program against \(settings.against ?? "")\n"
        text += "CPU per \(what) in µs, both under the same load at the same time:"
        text += " \(settings.recipients)\(groups), \(rounds.count) rounds\n"
        if settings.usesCluster { text += "this on a Redis Cluster of three, the other on one server, both by TCP\n" }
        text += "\n"
        text += Self.line("median", ["this", "against", "ratio", "lowest", "highest"])
        for figure in figures { text += row(figure) }
        text += "\n" + Self.line("ratio of each round", rounds.indices.map { "\($0 + 1)" })
        for figure in figures {
            text += Self.line(figure.rawValue, ratios(figure).map { BenchText.fixed($0, digits: 3) })
        }
        for (index, round) in rounds.enumerated() {
            for (name, outcome) in [("this", round.this), ("against", round.other)] where !isComplete(outcome) {
                text +=
                    "✗ round \(index + 1), \(name): \(settings.pushes) pushes expected, \(outcome.pushes) accepted, "
                text += "\(outcome.acceptedByServer) at the server\n"
            }
        }
        return text
    }

    private func row(_ figure: Figure) -> String {
        guard let this = Spread(values(figure, \.this)), let other = Spread(values(figure, \.other)),
            let ratio = Spread(ratios(figure))
        else { return "" }
        return Self.line(
            figure.rawValue,
            [BenchText.fixed(this.median, digits: 2), BenchText.fixed(other.median, digits: 2)]
                + [ratio.median, ratio.lowest, ratio.highest].map { BenchText.fixed($0, digits: 3) })
    }

    private static func line(_ name: String, _ columns: [String]) -> String {
        BenchText.name(name, nameWidth) + columns.map { BenchText.column($0, columnWidth) }.joined() + "\n"
    }

    // MARK: - JSON

    var json: String {
        JSONWriter.line { writer in
            writer.member("against", ifPresent: settings.against)
            writer.load(settings)
            writer.member("cluster", settings.usesCluster)
            writer.member("complete", succeeded)
            writer.objects("rounds", rounds) { writer, round in
                writer.object("this") { round.this.write(to: &$0) }
                writer.object("against") { round.other.write(to: &$0) }
            }
            writer.object("ratios") { writer in
                for figure in figures {
                    writer.key(escaping: figure.rawValue)
                    let spread = Spread(ratios(figure))
                    writer.object {
                        $0.figures([
                            ("median", spread?.median), ("lowest", spread?.lowest), ("highest", spread?.highest),
                        ])
                    }
                }
            }
        }
    }
}
