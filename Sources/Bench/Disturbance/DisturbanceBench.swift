// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Processes
import Simulator

/// `carillon bench --apns --disturb NAME`: the client in this process against a simulator in another process, with
/// bars.
struct DisturbanceBench {
    let settings: BenchSettings
    let disturbance: Disturbance

    /// Length of one measured stretch.
    private static let stretchSeconds = 3.0
    private static let badSeconds = 6.5
    /// Short stretches alternate, so that changes of the machine's speed affect both loads.
    private static let badStretch = 0.5
    /// A round in which other processes used more of the machine than this is repeated, up to the given number of
    /// times.
    private static let othersPercentMax = 15.0
    private static let replays = 2

    func run() async throws -> ExitCode {
        Allocator.keepFreed()
        let folder = try TemporaryFolder()
        _ = try DemoCredentials(folder: folder.file("secrets"))
        let figures =
            switch disturbance {
            case .soak: try await soak(folder)
            case .goAway: try await goAway(folder)
            case .badTokens: try await badTokens(folder)
            case .frozen: try await frozen(folder)
            case .far: try await far(folder)
            }
        Terminal.out(asJSON: settings.printsJSON, json: json(figures), text: TerminalText(lines: text(figures)))
        return figures.allSatisfy(\.isMet) ? .done : .failed
    }

    // MARK: Disturbances

    private func soak(_ folder: TemporaryFolder) async throws -> [BenchFigure] {
        let outcome = try await play(folder, nil) { plan in
            plan.pushes = settings.events
            plan.memoryEvery = max(1, settings.events / 20)
        }
        // Drops the first tenth, which is the warm-up.
        let memory = outcome.memory.dropFirst(2).map { Double($0) / 1_048_576 }
        guard !memory.isEmpty else { throw SetupFault("the memory was never measured") }
        var figures = memory.enumerated().map {
            BenchFigure("RSS after \(($0.offset + 3) * max(1, settings.events / 20)) pushes", $0.element, "MiB")
        }
        figures.append(BenchFigure("pushes/s", Double(outcome.ended) / outcome.seconds))
        figures.append(BenchFigure("RSS, mean", memory.reduce(0, +) / Double(memory.count), "MiB"))
        figures.append(BenchFigure("RSS, furthest from the mean", BenchFigure.swing(memory), "%", bar: .atMost(5)))
        return figures + [complete([outcome])]
    }

    private func goAway(_ folder: TemporaryFolder) async throws -> [BenchFigure] {
        // Three GOAWAYs, each with the second after it.
        let stretch = 2.9 * Double(Disturbance.goAwayEverySeconds)
        let near = try await rounds(settings.rounds) {
            let clean = try await play(folder, nil) { $0.seconds = $0.warmSeconds + stretch }
            let rough = try await play(folder, DisturbanceScenario.goAway) { $0.seconds = $0.warmSeconds + stretch }
            return [clean, rough]
        }
        let far = try await rounds(1) {
            let clean = try await play(folder, DisturbanceScenario.afar) { $0.seconds = $0.warmSeconds + stretch }
            let rough = try await play(folder, DisturbanceScenario.goAwayAfar) { $0.seconds = $0.warmSeconds + stretch }
            return [clean, rough]
        }
        return paces("near, clean", near.map { $0[0] }) + paces("near, GOAWAY every 5 s", near.map { $0[1] }) + [
            median("near, deepest second with a GOAWAY, below the mean", near) { $0[1].deepest(after: 0) },
            // The machine's own variation.
            median("near, deepest second half-way between two, below the mean", near) { $0[1].deepest(after: 2) },
            median("near, seconds with a GOAWAY below the others", near, bar: .below(5)) { $0[1].dipAtMarks },
            median("near, mean below clean", near, bar: .below(5)) { BenchFigure.below($0[1].pace, $0[0].pace) },
            median("near, longest wait", near, unit: "s") { Double($0[1].nanosMax) / 1e9 },
            BenchFigure("near, pushes sent again", Double(near.reduce(0) { $0 + $1[1].resent })),
        ] + paces("\(Disturbance.tripMs) ms away, clean", far.map { $0[0] })
            + paces("\(Disturbance.tripMs) ms away, GOAWAY every 5 s", far.map { $0[1] }) + [
                median("\(Disturbance.tripMs) ms away, mean below clean", far, bar: .below(5)) {
                    BenchFigure.below($0[1].pace, $0[0].pace)
                },
                // All connections are drained at once: nothing is sent for three round trips (TCP, TLS, first push).
                median("\(Disturbance.tripMs) ms away, deepest second with a GOAWAY, below the mean", far) {
                    $0[1].deepest(after: 0)
                },
                complete((near + far).flatMap { $0 }),
            ]
    }

    private func badTokens(_ folder: TemporaryFolder) async throws -> [BenchFigure] {
        let kinds: [(name: String, scenario: String?, marks: Bool, bar: BenchFigure.Bar?)] = [
            ("near, clean", nil, false, nil),
            ("near, 5 % bad, unmarked", DisturbanceScenario.badTokens, false, .atLeast(90)),
            ("near, 5 % bad, marked as never confirmed", DisturbanceScenario.badTokens, true, .atLeast(90)),
            ("near, 5 % bad, unmarked, nothing shrinks", DisturbanceScenario.badTokensUnshrunk, false, nil),
        ]
        let near = try await rounds(settings.rounds) {
            var outcomes: [LoadOutcome] = []
            for kind in kinds {
                outcomes.append(
                    try await play(folder, kind.scenario) { plan in
                        plan.seconds = plan.warmSeconds + Self.badSeconds
                        plan.badEvery = kind.scenario == nil ? nil : Disturbance.badEvery
                        plan.badStretches = Self.badStretch
                        plan.marksBad = kind.marks
                    })
            }
            return outcomes
        }
        var figures: [BenchFigure] = []
        for (index, kind) in kinds.enumerated() {
            let stretches = near.map { round in
                round[index].series.stretches(length: Self.badStretch, skipping: Self.badStretch / 5)
            }
            let warmUp = Int(near[0][index].warmSeconds / Self.badStretch)
            for (parity, name) in [kind.name, kind.name + ", the clean half seconds between"].enumerated() {
                guard index > 0 || parity == 0 else { continue }
                let paces = stretches.map { paces in
                    BenchFigure.median(paces.indices.filter { $0 > warmUp && $0 % 2 != parity }.map { paces[$0] })
                }
                figures.append(BenchFigure(name, BenchFigure.median(paces), "pushes/s"))
            }
            guard index > 0 else { continue }
            let (resent, rejected) = near.reduce((0, 0)) { ($0.0 + $1[index].resent, $0.1 + $1[index].rejected) }
            figures.append(
                BenchFigure(kind.name + ", sent again per rejection", Double(resent) / Double(max(1, rejected))))
            let shares = stretches.map { BenchFigure.median(OutcomeSeries.alternation($0, warmUp: warmUp)) }
            figures.append(median(kind.name + ", of the clean ones between", shares, "%", bar: kind.bar))
        }
        let afar = try await badTokensAfar(folder)
        return figures + afar.figures + [complete(near.flatMap { $0 } + afar.outcomes)]
    }

    /// On a distant simulator pushes take long to complete, so the loads run one after the other.
    private func badTokensAfar(
        _ folder: TemporaryFolder
    ) async throws -> (figures: [BenchFigure], outcomes: [LoadOutcome]) {
        func load(_ scenario: String, bad: Bool, marks: Bool) async throws -> LoadOutcome {
            try await play(folder, scenario) { plan in
                plan.seconds = plan.warmSeconds + Self.stretchSeconds
                plan.badEvery = bad ? Disturbance.badEvery : nil
                plan.marksBad = marks
            }
        }
        let played = try await rounds(settings.rounds) {
            [
                try await load(DisturbanceScenario.afar, bad: false, marks: false),
                try await load(DisturbanceScenario.badTokensAfar, bad: true, marks: false),
                try await load(DisturbanceScenario.badTokensAfar, bad: true, marks: true),
            ]
        }
        let names = ["clean", "5 % bad, unmarked", "5 % bad, marked as never confirmed"]
            .map { "\(Disturbance.tripMs) ms away, " + $0 }
        var figures: [BenchFigure] = []
        for (index, name) in names.enumerated() {
            figures += paces(name, played.map { $0[index] })
            guard index > 0 else { continue }
            let (resent, rejected) = played.reduce((0, 0)) { ($0.0 + $1[index].resent, $0.1 + $1[index].rejected) }
            figures.append(
                BenchFigure(name + ", sent again per rejection", Double(resent) / Double(max(1, rejected))))
            figures.append(
                median(name + ", of clean", played, bar: .atLeast(90)) {
                    BenchFigure.share($0[index].pace, of: $0[0].pace)
                })
        }
        return (figures, played.flatMap { $0 })
    }

    private func frozen(_ folder: TemporaryFolder) async throws -> [BenchFigure] {
        let outcome = try await play(folder, DisturbanceScenario.frozen) { plan in
            plan.seconds = 12
            plan.perSecond = 2_000
        }
        return [
            BenchFigure("pushes at 2000/s", Double(outcome.sent)),
            BenchFigure("connections", Double(outcome.connections)),
            BenchFigure("pushes sent again", Double(outcome.resent), bar: .atLeast(1)),
            BenchFigure("longest wait of those", Double(outcome.resentNanosMax) / 1e9, "s", bar: .below(3)),
            BenchFigure("longest wait of all", Double(outcome.nanosMax) / 1e9, "s", bar: .below(3)),
            complete([outcome]),
        ]
    }

    private func far(_ folder: TemporaryFolder) async throws -> [BenchFigure] {
        let body = "{\"aps\":{\"alert\":\"\(String(repeating: "x", count: 4_096 - 22))\"}}"
        let outcome = try await play(folder, DisturbanceScenario.far) { plan in
            plan.seconds = 30
            plan.perSecond = 2_000
            plan.payload = Array(body.utf8)
            plan.connections = settings.connections
        }
        return [
            BenchFigure("body", Double(body.utf8.count), "bytes"),
            BenchFigure("first ten seconds", outcome.series.perSecond(from: 0, to: 10), "pushes/s"),
            // One per cent below the configured 2 000 counts as met.
            BenchFigure("last ten seconds", outcome.series.perSecond(from: 20), "pushes/s", bar: .atLeast(1_980)),
            BenchFigure("connections", Double(outcome.connections)),
            BenchFigure("connections allowed", Double(settings.connections)),
            BenchFigure("longest wait", Double(outcome.nanosMax) / 1e9, "s"),
            complete([outcome]),
        ]
    }

    // MARK: Figures

    /// Compares both sides' counts: every push has an answer, and every acceptance came from the simulator.
    private func complete(_ outcomes: [LoadOutcome]) -> BenchFigure {
        let (sent, told) = outcomes.reduce((0, 0)) { ($0.0 + $1.sent, $0.1 + $1.acceptedByServer) }
        let invented = outcomes.reduce(0) { $0 + max(0, $1.accepted - $1.acceptedByServer) }
        let missing = outcomes.reduce(0) { $0 + $1.sent - $1.accepted - $1.rejected }
        return BenchFigure(
            "pushes without an answer of the simulator (it accepted \(told) of \(sent))", Double(missing + invented),
            bar: .atMost(0))
    }

    /// The results of one kind of load: its pace, and the cost of a push on both sides.
    private func paces(_ name: String, _ outcomes: [LoadOutcome]) -> [BenchFigure] {
        [
            BenchFigure(name, BenchFigure.median(outcomes.map(\.pace)), "pushes/s"),
            BenchFigure(name + ", client's CPU", BenchFigure.median(outcomes.map(\.clientMicros)), "µs/push"),
            BenchFigure(name + ", simulator's CPU", BenchFigure.median(outcomes.map(\.simulatorMicros)), "µs/push"),
        ]
    }

    /// The median over the rounds. Each round is compared within itself, because the machine's speed drifts.
    private func median(
        _ name: String, _ rounds: [[LoadOutcome]], unit: String = "%", bar: BenchFigure.Bar? = nil,
        _ value: ([LoadOutcome]) -> Double
    ) -> BenchFigure {
        median(name, rounds.map(value), unit, bar: bar)
    }

    private func median(
        _ name: String, _ values: [Double], _ unit: String, bar: BenchFigure.Bar?
    ) -> BenchFigure {
        let all = values.count > 1 ? " (\(values.map(BenchText.tenths).joined(separator: ", ")))" : ""
        return BenchFigure(name + all, BenchFigure.median(values), unit, bar: bar)
    }

    // MARK: Parts

    /// Runs the rounds. A round in which other processes used much of the machine is repeated; after the last repeat a
    /// warning is printed.
    private func rounds(
        _ count: Int, _ round: () async throws -> [LoadOutcome]
    ) async throws -> [[LoadOutcome]] {
        var played: [[LoadOutcome]] = []
        var left = Self.replays
        while played.count < count {
            let outcomes = try await round()
            let others = outcomes.map(\.othersPercent).max() ?? 0
            if others > Self.othersPercentMax {
                let what = "others had up to \(BenchText.tenths(others)) % of the machine"
                guard left == 0 else {
                    left -= 1
                    Terminal.err("\(what): once more\n")
                    continue
                }
                Terminal.err("\(what): the round counts all the same\n")
            }
            played.append(outcomes)
        }
        return played
    }

    /// One run with its own simulator.
    private func play(
        _ folder: TemporaryFolder, _ scenario: String?, _ change: (inout LoadPlan) -> Void
    ) async throws -> LoadOutcome {
        let arguments = try scenario.map {
            ["--scenario", try folder.write(Array($0.utf8), to: "scenario.json")]
        }
        let simulator = try BenchSimulator(credentials: folder.file("secrets"), arguments ?? [])
        defer { simulator.process.stop() }
        var plan = LoadPlan(
            endpoint: simulator.endpoint, credentials: folder.file("secrets"), simulator: simulator.process.pid,
            payload: Array(BenchTraffic.samplePayload.utf8))
        plan.streams = settings.streams
        change(&plan)
        Terminal.err("  \(scenario ?? "no disturbance") …\n")
        var outcome = try await PushLoad<DisturbanceFeeder>.play(plan)
        outcome.acceptedByServer = simulator.stop()
        return outcome
    }

    // MARK: Report

    private func text(_ figures: [BenchFigure]) -> String {
        let width = (figures.map(\.name.count).max() ?? 0) + 3
        var text = "\n\(disturbance.rawValue)\n"
        for figure in figures {
            text += "  " + BenchText.name(figure.name, width)
            text += BenchText.tenths(figure.value) + (figure.unit.isEmpty ? "" : " " + figure.unit)
            if let bar = figure.bar { text += "   bar: \(bar.text)   \(figure.isMet ? "✓" : "✗ missed")" }
            text += "\n"
        }
        return text
    }

    private func json(_ figures: [BenchFigure]) -> String {
        JSONWriter.line { writer in
            writer.member("disturbance", disturbance.rawValue)
            writer.objects("figures", figures) { writer, figure in
                writer.member("name", figure.name)
                writer.figure("value", figure.value)
                if !figure.unit.isEmpty { writer.member("unit", figure.unit) }
                if let bar = figure.bar {
                    writer.member("bar", bar.text)
                    writer.member("met", figure.isMet)
                }
            }
        }
    }
}
