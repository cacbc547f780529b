// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Kafka
import LocalServers
import Processes
import Worker

/// `carillon bench --against BINARY`: this program's worker and another's under the same load at the same time.
///
/// Each side has its own broker, redis-server and simulator. Both sides get the same records in the same steps. Neither
/// gets more than `backlog` records ahead of the other, so their rates stay equal whatever their cost.
struct PairBench {
    /// The worker of this program first, the other's second.
    let sides: [BenchServers]
    private let settings: BenchSettings

    /// A step of the load, in records.
    private let step: Int
    /// How far the producer may be ahead of the slower worker, in records.
    private let backlog: Int

    /// Starts both sides' servers.
    init(_ settings: BenchSettings, against program: String) async throws {
        self.settings = settings
        step = max(1, settings.records / 20)
        backlog = 4 * step
        let first = try await BenchServers(settings, backlog: backlog, simulatorThread: "simulator-this")
        do {
            let second = try await BenchServers(
                settings, program: program, backlog: backlog, simulatorThread: "simulator-other")
            sides = [first, second]
        } catch {
            await first.cluster.close()
            throw error
        }
    }

    func close() async {
        for side in sides { await side.cluster.close() }
    }

    /// Binds the users on each side through its own worker, then runs the rounds.
    ///
    /// - Parameter say: receives the progress text.
    func run(_ say: (TerminalText) -> Void) async throws -> PairReport {
        say("binding \(settings.users) users on each side …\n")
        for side in sides {
            _ = try await side.bindUsers()
            try side.makeGroups()
        }
        var report = PairReport(settings: settings)
        for number in 1...settings.rounds {
            say("round \(number) of \(settings.rounds): \(settings.records) messages on each side …\n")
            report.rounds.append(try await round(number))
        }
        return report
    }

    /// Starts two workers, applies the load and stops both. Odd rounds start this program's worker first, even rounds
    /// the other's.
    private func round(_ number: Int) async throws -> PairReport.Round {
        let isOtherFirst = number.isMultiple(of: 2)
        var runs: [Run] = []
        for side in isOtherFirst ? sides.reversed() : sides { runs.append(try await Run(side)) }
        for index in runs.indices { try await runs[index].begin() }
        try await play(&runs, series: "t\(number)-\(Loop.wallMs())")
        for run in runs { try run.worker.stop() }
        guard let first = runs.first?.outcome, let second = runs.last?.outcome else {
            throw SetupFault("a side did not end")
        }
        return isOtherFirst
            ? PairReport.Round(this: second, other: first) : PairReport.Round(this: first, other: second)
    }

    /// One side's worker in a round.
    private struct Run {
        let side: BenchServers
        let worker: BenchWorker
        let writer: KafkaTopicWriter
        private var start: BenchMark
        private(set) var settled = 0
        private(set) var decided = 0
        private(set) var outcome: ThroughputPhase.Outcome?

        init(_ side: BenchServers) async throws {
            self.side = side
            worker = try await side.startWorker()
            writer = try KafkaTopicWriter(side.cluster.kafka, topic: Configuration.Topics().events)
            start = try await BenchMark(side, [worker])
        }

        /// Measuring starts here.
        mutating func begin() async throws { start = try await BenchMark(side, [worker]) }

        /// Samples the worker's metrics. Stores the outcome when the last record is settled.
        mutating func sample() async throws {
            guard outcome == nil else { return }
            let metrics = try worker.metrics()
            settled = metrics.settled
            decided = metrics.decided
            // The event of a large group is settled before its chunks are.
            guard settled >= side.settings.records, decided >= side.settings.recipients else { return }
            outcome = ThroughputPhase.Outcome(
                from: start, to: try await BenchMark(side, [worker]), recipients: side.settings.recipients,
                pushes: metrics.accepted, peakBytes: worker.memory.peak)
        }
    }

    /// Writes the records to both sides and waits until both have settled all. A minute without progress is a fault.
    private func play(_ runs: inout [Run], series: String) async throws {
        let atMs = Loop.wallMs()
        var written = 0
        var progress = BenchProgress()
        while runs.contains(where: { $0.outcome == nil }) {
            let slowest = runs.map(\.settled).min() ?? 0
            let end = min(settings.records, slowest + backlog)
            if end >= min(settings.records, written + step) {
                for number in written..<end {
                    let record = sides[0].event(number, series: series, atMs: atMs)
                    for run in runs { try run.side.write(record, to: run.writer) }
                }
                written = end
                if written == settings.records { for run in runs { try run.side.finish(run.writer, written) } }
            }
            // Each answer of `/metrics` is the worker's CPU time too.
            try await Task.sleep(for: .milliseconds(250), tolerance: .zero)
            for index in runs.indices { try await runs[index].sample() }
            try progress.note(runs.reduce(0) { $0 + $1.settled + $1.decided })
        }
    }
}
