// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Processes
import Simulator

/// `carillon bench --apns`: measures the APNs client alone against h2load. Simulator, client and h2load are processes
/// of their own.
///
/// Client and h2load send the same number of requests with the same headers, body, device tokens, connections and
/// streams to the same simulator. They run in turns, so that a change of the machine's speed affects both. The medians
/// are compared.
struct APNsBench {
    let settings: BenchSettings

    struct Round {
        var clientMicros: Double
        var clientPerSecond: Double
        var loadMicros: Double?
        var loadPerSecond: Double?
    }

    func run() throws -> ExitCode {
        let folder = try TemporaryFolder()
        let credentials = try DemoCredentials(folder: folder.file("secrets"))
        let simulator = try BenchSimulator(
            credentials: folder.file("secrets"),
            ["--window", String(settings.window), "--streams", String(settings.streams)])
        defer { simulator.process.stop() }
        let load = H2LoadPhase.Requests(
            port: simulator.port, users: min(settings.events, 50_000), count: settings.events,
            connections: settings.connections,
            streams: settings.streams, credentials: credentials, folder: folder)
        var rounds: [Round] = []
        for number in 1...settings.rounds {
            Terminal.err("round \(number) of \(settings.rounds) …\n")
            let client = try pushes(simulator.endpoint, folder)
            let other = H2LoadPhase.isPossible ? try H2LoadPhase.run(load) : nil
            rounds.append(
                Round(
                    clientMicros: client.micros, clientPerSecond: client.perSecond, loadMicros: other?.micros,
                    loadPerSecond: other?.perSecond))
        }
        Terminal.out(asJSON: settings.printsJSON, json: json(rounds), text: TerminalText(lines: text(rounds)))
        return .done
    }

    /// Runs this program as the simulator's client.
    private func pushes(_ endpoint: String, _ folder: TemporaryFolder) throws -> (micros: Double, perSecond: Double) {
        let process = try FinishedProcess.run(
            try BenchWorker.ownPath(),
            [
                "bench", "--apns-client", endpoint, "--credentials", folder.file("secrets"),
                "--events", String(settings.events), "--connections", String(settings.connections), "--streams",
                String(settings.streams),
            ])
        guard process.exitCode == 0, let line = process.output.split(separator: "\n").last,
            let told = try? JSONTree(parsing: Array(line.utf8)), let perSecond = told["per_s"]?.double
        else { throw SetupFault("the client failed: \(process.output.suffix(600))") }
        return (process.cpuSeconds * 1e6 / Double(settings.events), perSecond)
    }

    private func ratio(_ rounds: [Round]) -> Double? {
        guard let client = BenchReport.median(rounds.map(\.clientMicros)),
            let load = BenchReport.median(rounds.compactMap(\.loadMicros)), load > 0
        else { return nil }
        return client / load
    }

    private func text(_ rounds: [Round]) -> String {
        func number(_ value: Double?) -> String { value.map(BenchText.tenths) ?? "-" }
        var text =
            "\n\(settings.events) pushes, \(settings.connections) connections of \(settings.streams) streams\n"
            + "whole processes, CPU µs per push\n"
        for (index, round) in rounds.enumerated() {
            text += "  round \(index + 1)   client \(number(round.clientMicros))"
            text += " (\(BenchText.rounded(round.clientPerSecond))/s)"
            if let micros = round.loadMicros, let rate = round.loadPerSecond {
                text += "   h2load \(number(micros)) (\(BenchText.rounded(rate))/s)"
            }
            text += "\n"
        }
        text += "median    client \(number(BenchReport.median(rounds.map(\.clientMicros))))"
        guard let ratio = ratio(rounds) else { return text + "\nh2load is not installed (nghttp2-client): no ratio\n" }
        return text + "   h2load \(number(BenchReport.median(rounds.compactMap(\.loadMicros))))\n"
            + "client / h2load   \(BenchText.tenths(ratio))\n"
    }

    private func json(_ rounds: [Round]) -> String {
        JSONWriter.line { writer in
            writer.count("pushes", settings.events)
            writer.count("connections", settings.connections)
            writer.count("streams", settings.streams)
            writer.objects("rounds", rounds) { writer, round in
                writer.figures([
                    ("client_cpu_us", round.clientMicros), ("client_per_s", round.clientPerSecond),
                    ("h2load_cpu_us", round.loadMicros), ("h2load_per_s", round.loadPerSecond),
                ])
            }
            writer.figure("client_per_h2load", ratio(rounds))
        }
    }
}
