public import Console
import EventLoop
import JSON
import Kafka
import LocalServers
import Processes
import Simulator
import Telemetry
import Worker

/// `carillon demo`: the whole path on this machine, and what happened to each event.
public struct DemoCommand: Command, Sendable {
    public static let spec = CommandSpec(
        name: "demo",
        summary: "broker, Redis, APNs simulator and worker on this machine; tells what happens to each event",
        details: """
            Starts a Kafka-protocol broker, redis-server, the APNs simulator and a worker on free ports of 127.0.0.1, with
            their files in a temporary folder. Writes the world of DIR (who is connected where, tokens, settings), plays its
            events, and prints what became of each and why. Everything is ended and removed afterwards.

            The last outcome takes about eight seconds: one phone looks connected but never acknowledges.
            """,
        options: [
            .value("world", "DIR", "world.json, state.ndjson and events.ndjson (default: Config/demo)"),
            .value("events", "FILE", "other events, one JSON record a line; times move so that the newest is now"),
            .flag("cluster", "a Redis Cluster of six nodes in place of one server"),
            .flag("keep", "go on until ctrl-C after the events, for a look at the operator's pages"),
            CommandSpec.json,
        ])

    private let world: String
    private let events: String
    private let keeps: Bool
    private let usesCluster: Bool
    private let printsJSON: Bool

    public init(_ arguments: Arguments) {
        world = arguments.string("world") ?? "Config/demo"
        events = arguments.string("events") ?? world + "/events.ndjson"
        keeps = arguments.has("keep")
        usesCluster = arguments.has("cluster")
        printsJSON = arguments.has("json")
    }

    public func run() async -> ExitCode {
        let worldFile: [UInt8]
        let state: [[UInt8]]
        let events: [[UInt8]]
        do throws(FileFault) {
            worldFile = try Files.read(world + "/world.json")
            state = try Files.lines(world + "/state.ndjson")
            events = try Files.lines(self.events)
        } catch {
            Terminal.err(
                "carillon demo: \(error.description)\n(run it from the top of the repository, or give --world)\n")
            return .usage
        }
        do {
            let signals = try EndSignals()
            let ending = Ending()
            signals.onFirst { ending.resolve(.done) }
            var settings = LocalCluster.Settings()
            settings.scenario = DemoRun.deadTokens(nowMs: Loop.wallMs())
            settings.templates = Files.exists("Config/templates.yaml") ? "Config/templates.yaml" : nil
            settings.usesRedisCluster = usesCluster
            // The embedded broker waits so long for a consumer that missed the group's beginning.
            settings.sessionMs = 6_000
            say("starting broker, Redis and APNs simulator …\n")
            let cluster = try await LocalCluster(settings)
            let run = DemoRun(cluster: cluster, worldFile: worldFile, state: state, events: events)
            let code = await perform(run, until: ending)
            await cluster.close()
            return code
        } catch {
            Terminal.err("carillon demo: \(error)\n")
            return .failed
        }
    }

    /// The run, or the first signal, whichever comes first.
    private func perform(_ run: DemoRun, until ending: Ending) async -> ExitCode {
        let playing = Task {
            do {
                ending.resolve(try await play(run) && !keeps ? .done : .failed)
            } catch {
                if !(error is CancellationError) { Terminal.err("carillon demo: \(error)\n") }
                ending.resolve(.failed)
            }
        }
        let code = await ending.value()
        playing.cancel()
        return code
    }

    /// True when the demo is over; false never comes back where it is kept.
    private func play(_ run: DemoRun) async throws -> Bool {
        let worker = try await run.cluster.startWorker()
        try await run.cluster.awaitGroup(of: [worker])
        let port = await worker.operatorPort
        say(
            """
            broker     \(run.cluster.broker.bootstrap)
            redis      \(run.cluster.redisCluster?.urls ?? run.cluster.redis.url)
            simulator  https://localhost:\(run.cluster.simulatorPort)
            worker     http://127.0.0.1:\(port)/  (metrics, statusz, readyz, livez)


            """)
        let isInteractive = Terminal.isInteractive
        let outcomes = try await run.play(worker: worker) { settled, total in
            guard isInteractive else { return }
            Terminal.clearLine()
            Terminal.err("\(settled) of \(total) records settled ")
        }
        if isInteractive { Terminal.clearLine() }
        for outcome in outcomes {
            Terminal.out(asJSON: printsJSON, json: DemoReport.json(outcome), text: DemoReport.text(outcome))
        }
        if !printsJSON { Terminal.out(DemoReport.summary(outcomes)) }
        guard keeps else { return true }
        say("\nhttp://127.0.0.1:\(port)/ stays until ctrl-C\n")
        while true { try await Task.sleep(for: .seconds(3600)) }
    }

    private func say(_ text: TerminalText) {
        if printsJSON { Terminal.err(text) } else { Terminal.out(text) }
    }
}
