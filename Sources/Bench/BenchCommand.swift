// SPDX-License-Identifier: Apache-2.0
public import Console
import EventLoop
import Kafka
import LocalServers
import Processes
import Recording
import Worker

/// `carillon bench`: end-to-end load on embedded servers.
public struct BenchCommand: Command, Sendable {
    public static let spec = CommandSpec(
        name: "bench",
        summary: "load on embedded parts: pushes per second, CPU per push, latency, memory",
        details: """
            Starts a Kafka-protocol broker and the APNs simulator in this process, redis-server and a worker as their own processes,
            all on 127.0.0.1 with files in a temporary folder. Binds the users by real records, then measures:

            throughput  a backlog of --events messages, one push each, from the first record to the last settled one
            h2load      if installed, before and after each round: the same requests to the same simulator. The mean CPU per request
                        of both is the reference of the round; the report has the median of the rounds
            latency     a constant --rate of messages for --seconds
            memory      APNs is down: the memory of the worker with up to --held pushes

            With --apns: the APNs client alone, in its own process, in turn with h2load, against a simulator in a third process; the
            ratio of the medians.

            With --apns --disturb NAME: this client, with the limits of its library, against its bars; exit code 1 below one.

            soak        RSS over --events pushes (2000000), measured twenty times, without the first tenth: within 5 % of its mean
            goaway      GOAWAY on all connections every 5 s for 20 s, compared with a clean run: no second and no mean 5 % lower
            bad-tokens  every twentieth token refused, each refusal removes all streams but one: 90 % of the rate of a clean run
            frozen      one connection falls silent at 2000 pushes/s: every push answered within 3 s
            far         80 ms round trip, bodies of 4 KB, windows of 64 KB: the pool grows until 2000 pushes/s are reached

            With --against BINARY: this program's worker and the worker of another carillon executable, for example of an older
            commit, each with its own broker, redis-server and simulator. Both get the same records in the same steps at the same
            time, so other load on the machine slows both, and neither gets far ahead. The report compares CPU, not time: of each
            worker with the other, with its own redis-server and with its own simulator; median, lowest and highest ratio of the
            rounds (this program / BINARY). The simulators are the same program, so their ratio shows the noise. Most noise affects
            one whole side, so "worker / redis-server" varies least. It works with --group, --muted, --events, --users, --rounds (5),
            --shards, --in-flight, --results, --redis-tcp, --cluster and --json. Workers start again in each round, in alternating
            order.

            With --decide: decision and rendering alone on one thread, without servers. With --group N the throughput phase writes to
            groups of N members. With --muted all members are denied: the whole cost of a member without a push, with record and
            mark. With --unsent APNs is down: the cost of a member until the APNs client has its push, without sending, outcome record
            and mark. The same messages are played and expire once before, so that the measured run finds its memory allocated. h2load
            runs for both.

            With --beside N: --rate (500) 1:1 messages per second for --seconds alone, then until one message to a group of N members
            has drained, --rounds (3) times: latency by lane from Kafka's timestamp to APNs' answer, as the workers report it, and the
            memory that the group adds to a worker. The bars: the 99th percentile of 1:1 at most doubles, and a worker grows by less
            than 64 MiB; exit code 1 if one is missed.

            With --beside and --stages the report also shows the waits of 1:1 messages by step: kafka (until the record is read), start
            (until there is room for the recipient), lookup, claim, push (the device's turn, a stream, APNs); the CPU of
            the loops' turns; the use of the processors and the waits for them; and the workers' CPU per push by stage.

            With --stages the report shows the CPU of a push by stage. The worker measures its stages (`run --stage-times`): read
            (records parsed and distributed), lookup, decide, claim, render, send (HTTP/2, TLS, kernel, answers), record; the shards'
            CPU is divided by these times. redis-server's CPU is its own account per command, by the stage that sends the command; the
            rest is its protocol and the kernel. The clock costs about 2 %, so compare such runs only with each other.

            CPU is the kernel's account of the threads (schedstat), h2load's by wait4. Use a release build.
            """,
        options: BenchSettings.options)

    private let settings: BenchSettings

    public init(_ arguments: Arguments) throws(Arguments.UsageError) {
        settings = try BenchSettings(arguments)
    }

    public func run() async -> ExitCode {
        do {
            if let endpoint = settings.apnsClient, let credentials = settings.credentials {
                let client = APNsBenchClient(
                    endpoint: endpoint, credentials: credentials, pushes: settings.events,
                    connections: settings.connections, streams: settings.streams)
                return try await client.run()
            }
            let signals = try EndSignals()
            if settings.isDecideOnly || settings.isAPNsOnly || settings.disturbance != nil {
                signals.onFirst { EndSignals.endAtOnce() }
            }
            if settings.isDecideOnly { return try DecideBench(settings: settings).run() }
            if let disturbance = settings.disturbance {
                return try await DisturbanceBench(settings: settings, disturbance: disturbance).run()
            }
            if settings.isAPNsOnly { return try APNsBench(settings: settings).run() }
            if let against = settings.against {
                say("starting broker, Redis and APNs simulator, twice …\n")
                let bench = try await PairBench(settings, against: against)
                return await ended(by: signals, { end(try await bench.run(say)) }, thenClosing: { await bench.close() })
            }
            say("starting broker, Redis and APNs simulator …\n")
            if let members = settings.beside {
                let servers = try await BenchServers(settings, backlog: 100_000)
                return await ended(
                    by: signals, { end(try await BesideBench(servers, members: members).run(say)) },
                    thenClosing: { await servers.cluster.close() })
            }
            let bench = try await BenchServers(settings)
            return await ended(by: signals, { try await play(bench) }, thenClosing: { await bench.cluster.close() })
        } catch {
            Terminal.err("carillon bench: \(error)\n")
            return .failed
        }
    }

    /// Runs to the end or to the first signal, then closes. The child processes end with it.
    private func ended(
        by signals: EndSignals, _ play: @escaping @Sendable () async throws -> ExitCode,
        thenClosing close: () async -> Void
    ) async -> ExitCode {
        let ending = Ending()
        signals.onFirst { ending.resolve(.failed) }
        let playing = Task {
            do {
                ending.resolve(try await play())
            } catch {
                if !(error is CancellationError) { Terminal.err("carillon bench: \(error)\n") }
                ending.resolve(.failed)
            }
        }
        let code = await ending.value()
        playing.cancel()
        await playing.value
        await close()
        return code
    }

    private func end(_ report: some JudgedReport) -> ExitCode {
        Terminal.out(asJSON: settings.printsJSON, json: report.json, text: TerminalText(lines: report.text))
        return report.succeeded ? .done : .failed
    }

    private func play(_ bench: BenchServers) async throws -> ExitCode {
        let comparison = try settings.comparePath.map { try ReportComparison(readingFrom: $0, BenchPage.figures) }
        var report = BenchReport(settings: settings)
        report.origin = ReportOrigin(
            startedMs: Loop.wallMs(), version: WorkerProcess.version, settings: settings.texts)
        say("binding \(settings.users) users …\n")
        report.bindsPerSecond = try await bench.bindUsers()
        try bench.makeGroups()
        try runH2Load(for: bench, into: &report)
        for round in 1...settings.rounds {
            let which = settings.rounds > 1 ? ", round \(round) of \(settings.rounds)" : ""
            say("pushing \(settings.records) messages\(which) …\n")
            report.throughput.append(try await ThroughputPhase.run(bench, round: round))
            try runH2Load(for: bench, into: &report)
        }
        if settings.rate > 0 {
            say("pushing \(settings.rate) messages a second for \(settings.seconds) s …\n")
            report.latency = try await LatencyPhase.run(bench)
        }
        if settings.held > 0 {
            say("holding \(settings.held) pushes …\n")
            report.memory = try await MemoryPhase.run(bench)
        }
        let code = end(report)
        if let path = settings.htmlPath {
            try Files.write(Array(BenchPage(report, comparedBy: comparison).html.utf8), to: path)
        }
        if settings.keeps { try await keep(bench) }
        return code
    }

    private func runH2Load(for bench: BenchServers, into report: inout BenchReport) throws {
        guard H2LoadPhase.isPossible else { return }
        say("h2load …\n")
        report.h2load.append(try H2LoadPhase.run(bench))
    }

    private func keep(_ bench: BenchServers) async throws {
        let worker = try await bench.startWorker()
        say(
            """
            broker     \(bench.cluster.broker.bootstrap)
            redis      \(bench.cluster.redis.url)
            simulator  https://localhost:\(bench.cluster.simulatorPort)
            worker     process \(worker.process.pid), until ctrl-C

            """)
        while worker.process.isRunning {
            do {
                try await Task.sleep(for: .milliseconds(500), tolerance: .zero)
            } catch {
                break
            }
            _ = worker.process.takeOutput()
        }
        try worker.stop()
    }

    private func say(_ text: TerminalText) { Terminal.err(text) }
}
