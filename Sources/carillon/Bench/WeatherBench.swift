import EventLoop
import Glibc
import JSON
import Simulator
import Trial

/// `carillon bench --apns --weather NAME`: the client in this process against a simulator in another, with a bar.
struct WeatherBench {
    let settings: BenchSettings
    let weather: Weather

    /// A figure, and the bar it has to reach where there is one.
    struct Figure {
        var name: String
        var value: Double
        var unit = ""
        var bar: String?
        var isMet = true
    }

    /// What the limiter and the pool need to find their size.
    private static let warmSeconds = 2.0
    private static let loadSeconds = 20.0

    func run() async throws -> ExitCode {
        Allocator.keepFreed()
        let folder = try TemporaryFolder()
        _ = try DemoCredentials(folder: folder.file("secrets"))
        let figures =
            switch weather {
            case .soak: try await soak(folder)
            case .goAway: try await goAway(folder)
            case .badTokens: try await badTokens(folder)
            case .frozen: try await frozen(folder)
            case .far: try await far(folder)
            }
        Terminal.out(settings.printsJSON ? json(figures) : text(figures))
        return figures.allSatisfy(\.isMet) ? .done : .failed
    }

    // MARK: Weathers

    private func soak(_ folder: TemporaryFolder) async throws -> [Figure] {
        let outcome = try await play(folder, nil) { plan in
            plan.pushes = settings.events
            plan.memoryEvery = max(1, settings.events / 20)
        }
        // The first tenth is the warm-up.
        let memory = outcome.memory.dropFirst(2).map { Double($0) / 1_048_576 }
        guard !memory.isEmpty else { throw TrialFault("the memory was never noted") }
        let mean = memory.reduce(0, +) / Double(memory.count)
        let swing = (memory.map { abs($0 - mean) }.max() ?? 0) / mean * 100
        var figures = memory.enumerated().map {
            Figure(
                name: "RSS after \(($0.offset + 3) * max(1, settings.events / 20)) pushes", value: $0.element,
                unit: "MiB")
        }
        figures.append(Figure(name: "pushes/s", value: Double(outcome.ended) / outcome.seconds))
        figures.append(Figure(name: "RSS, mean", value: mean, unit: "MiB"))
        figures.append(
            Figure(name: "RSS, furthest from the mean", value: swing, unit: "%", bar: "at most 5", isMet: swing <= 5))
        return figures + [complete(outcome)]
    }

    private func goAway(_ folder: TemporaryFolder) async throws -> [Figure] {
        let clean = try await play(folder, nil) { $0.seconds = Self.loadSeconds + Self.warmSeconds }
        let rough = try await play(folder, weather.scenario) { $0.seconds = Self.loadSeconds + Self.warmSeconds }
        let (mean, lowest) = (rough.perSecond(from: Self.warmSeconds), rough.lowestSecond(from: Self.warmSeconds))
        let cleanMean = clean.perSecond(from: Self.warmSeconds)
        let dip = 100 - mean / cleanMean * 100
        let deepest = 100 - lowest / mean * 100
        let parts = rough.perSecond(around: Weather.goAwayEverySeconds, from: Self.warmSeconds)
        return [
            Figure(name: "clean, mean", value: cleanMean, unit: "pushes/s"),
            Figure(
                name: "clean, lowest second below its mean",
                value: 100 - clean.lowestSecond(from: Self.warmSeconds) / cleanMean * 100, unit: "%"),
            Figure(name: "GOAWAY every \(Weather.goAwayEverySeconds) s, mean", value: mean, unit: "pushes/s"),
            Figure(
                name: "seconds with a GOAWAY below those without", value: 100 - parts.around / parts.others * 100,
                unit: "%"),
            Figure(name: "pushes sent again", value: Double(rough.resent)),
            Figure(name: "longest wait", value: Double(rough.nanosMax) / 1e9, unit: "s"),
            Figure(name: "lowest second below the mean", value: deepest, unit: "%", bar: "below 5", isMet: deepest < 5),
            Figure(name: "mean below the clean one", value: dip, unit: "%", bar: "below 5", isMet: dip < 5),
            complete(rough),
        ]
    }

    private func badTokens(_ folder: TemporaryFolder) async throws -> [Figure] {
        let seconds = Self.loadSeconds / 2 + Self.warmSeconds
        let clean = try await play(folder, nil) { $0.seconds = seconds }
        var figures = [Figure(name: "clean", value: clean.perSecond(from: Self.warmSeconds), unit: "pushes/s")]
        for marks in [true, false] {
            let rough = try await play(folder, weather.scenario) { plan in
                plan.seconds = seconds
                plan.badEvery = 20
                plan.marksBad = marks
            }
            let share = rough.perSecond(from: Self.warmSeconds) / clean.perSecond(from: Self.warmSeconds) * 100
            let what = marks ? "5 % bad, marked as never confirmed" : "5 % bad, unmarked"
            figures.append(Figure(name: what, value: rough.perSecond(from: Self.warmSeconds), unit: "pushes/s"))
            figures.append(
                Figure(name: what + ", of clean", value: share, unit: "%", bar: "at least 90", isMet: share >= 90))
            figures.append(Figure(name: what + ", rejected", value: Double(rough.rejected), unit: "pushes"))
            figures.append(complete(rough))
        }
        return figures
    }

    private func frozen(_ folder: TemporaryFolder) async throws -> [Figure] {
        let outcome = try await play(folder, weather.scenario) { plan in
            plan.seconds = 12
            plan.perSecond = 2_000
        }
        let longest = Double(outcome.nanosMax) / 1e9
        return [
            Figure(name: "pushes at 2000/s", value: Double(outcome.sent)),
            Figure(name: "connections", value: Double(outcome.connections)),
            Figure(
                name: "pushes sent again", value: Double(outcome.resent), bar: "some", isMet: outcome.resent > 0),
            Figure(name: "longest wait of those", value: Double(outcome.resentNanosMax) / 1e9, unit: "s"),
            Figure(name: "longest wait of all", value: longest, unit: "s", bar: "below 3", isMet: longest < 3),
            complete(outcome),
        ]
    }

    private func far(_ folder: TemporaryFolder) async throws -> [Figure] {
        let body = "{\"aps\":{\"alert\":\"\(String(repeating: "x", count: 4_096 - 22))\"}}"
        let outcome = try await play(folder, weather.scenario) { plan in
            plan.seconds = 30
            plan.perSecond = 2_000
            plan.payload = Array(body.utf8)
            plan.connections = settings.connections
        }
        let reached = outcome.perSecond(from: 20)
        return [
            Figure(name: "body", value: Double(body.utf8.count), unit: "bytes"),
            Figure(
                name: "first ten seconds", value: Double(outcome.tenths.prefix(100).reduce(0, +)) / 10, unit: "pushes/s"
            ),
            Figure(
                name: "last ten seconds", value: reached, unit: "pushes/s", bar: "2000 (1 % less is told as reached)",
                isMet: reached >= 1_980),
            Figure(name: "connections", value: Double(outcome.connections)),
            Figure(name: "connections allowed", value: Double(settings.connections)),
            Figure(name: "longest wait", value: Double(outcome.nanosMax) / 1e9, unit: "s"),
            complete(outcome),
        ]
    }

    /// Both sides' counts: every push answered, and no acceptance that the simulator did not give.
    private func complete(_ outcome: WeatherOutcome) -> Figure {
        let missing = outcome.sent - outcome.accepted - outcome.rejected
        return Figure(
            name: "pushes without an answer (the simulator accepted \(outcome.acceptedByServer) of \(outcome.sent))",
            value: Double(missing), bar: "0", isMet: missing == 0 && outcome.acceptedByServer >= outcome.accepted)
    }

    // MARK: Parts

    /// One run against a simulator of its own.
    private func play(
        _ folder: TemporaryFolder, _ scenario: String?, _ change: (inout WeatherPlan) -> Void
    ) async throws -> WeatherOutcome {
        var arguments = [
            "simulate", "--listen", "127.0.0.1:0", "--counts-only", "--json", "--credentials", folder.file("secrets"),
        ]
        if let scenario {
            let path = folder.file("scenario.json")
            try Self.write(scenario, to: path)
            arguments += ["--scenario", path]
        }
        let simulator = try ServerProcess(try BenchWorker.ownPath(), arguments, readyLine: "\"endpoint\"")
        defer { simulator.stop() }
        let pieces = simulator.takeOutput().split(separator: "\"port\":").dropFirst()
        guard let digits = pieces.first?.prefix(while: \.isNumber), let port = UInt16(digits) else {
            throw TrialFault("the simulator told no port: \(simulator.takeOutput().suffix(600))")
        }
        var plan = WeatherPlan(
            endpoint: "https://localhost:\(port)", credentials: folder.file("secrets"),
            payload: Array(BenchTraffic.samplePayload.utf8))
        plan.streams = settings.streams
        change(&plan)
        Terminal.err(scenario == nil ? "fair weather …\n" : "\(weather.rawValue) …\n")
        var outcome = try await WeatherLoad.play(plan)
        simulator.stop()
        let told = simulator.takeOutput().split(separator: "\"accepted\":").dropFirst()
        outcome.acceptedByServer = told.first.flatMap { Int($0.prefix(while: \.isNumber)) } ?? 0
        return outcome
    }

    private static func write(_ text: String, to path: String) throws(TrialFault) {
        guard let file = fopen(path, "w") else { throw TrialFault("cannot write \(path)") }
        defer { fclose(file) }
        guard fputs(text, file) >= 0 else { throw TrialFault("cannot write \(path)") }
    }

    // MARK: Report

    private func text(_ figures: [Figure]) -> String {
        let width = (figures.map(\.name.count).max() ?? 0) + 3
        var text = "\n\(weather.rawValue)\n"
        for figure in figures {
            text += "  " + figure.name + String(repeating: " ", count: width - figure.name.count)
            text += BenchReport.tenths(figure.value) + (figure.unit.isEmpty ? "" : " " + figure.unit)
            if let bar = figure.bar { text += "   bar: \(bar)   \(figure.isMet ? "✓" : "✗ missed")" }
            text += "\n"
        }
        return text
    }

    private func json(_ figures: [Figure]) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("weather", weather.rawValue)
        writer.key("figures")
        writer.beginArray()
        for figure in figures {
            writer.beginObject()
            writer.member("name", figure.name)
            BenchReport.write("value", figure.value, to: &writer)
            if !figure.unit.isEmpty { writer.member("unit", figure.unit) }
            if let bar = figure.bar {
                writer.member("bar", bar)
                writer.member("met", figure.isMet)
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
