// SPDX-License-Identifier: Apache-2.0
public import Console
import EventLoop
import JSON
import Kafka
import LocalServers
import Processes
import Simulator
import Telemetry
import Worker

/// `carillon demo`: runs everything on this machine, and shows the result of each event.
public struct DemoCommand: Command, Sendable {
    public static let spec = CommandSpec(
        name: "demo",
        summary: "broker, Redis, APNs simulator and worker on this machine; shows what happens to each event",
        details: """
            Starts a Kafka-protocol broker, redis-server, the APNs simulator and a worker on free ports of 127.0.0.1, with their files
            in a temporary folder. Writes a world (connections, tokens, settings), plays its events, and prints each outcome with its
            reason. At the end it stops and removes everything.

            --world FOLDER  world.json, state.ndjson and events.ndjson, such as Config/demo. Its last outcome takes about eight
                            seconds: one phone looks connected but never acknowledges.
            --world FILE    your own events and user state, one record per line, plain or from `record`. A named user without a bind
                            in the file gets a generated device; the members of a group are the users that the file names in it.

            With --keep everything stays until ctrl-C, also its configuration, and the command prints further commands to try.

            exit codes: 0 done, 1 something did not start or end, 64 bad usage
            """,
        options: [
            .value("world", "PATH", "a folder or a file (Config/demo)"),
            .value("events", "FILE", "other events in a folder's world, one JSON record a line"),
            .flag("cluster", "a Redis Cluster of six nodes in place of one server"),
            .flag("keep", "goes on until ctrl-C after the events, with commands to try"),
            CommandSpec.json,
        ])

    private let world: String
    private let events: String?
    private let keeps: Bool
    private let usesCluster: Bool
    private let printsJSON: Bool

    /// Its location in the package and in the repository.
    private static let worlds = ["Config/demo", "/usr/share/carillon/demo"]
    private static let templates = ["Config/templates.yaml", "/etc/carillon/templates.yaml"]

    public init(_ arguments: Arguments) {
        world =
            arguments.string("world") ?? Self.worlds.first { Files.exists($0 + "/world.json") } ?? Self.worlds[0]
        events = arguments.string("events")
        keeps = arguments.has("keep")
        usesCluster = arguments.has("cluster")
        printsJSON = arguments.has("json")
    }

    /// The records to send, and the apps that they need.
    private struct Play {
        var worldFile: [UInt8]
        var state: [[UInt8]]
        var events: [[UInt8]]
        /// Nil for a folder's world, which uses the app of the settings.
        var own: OwnWorld?
    }

    public func run() async -> ExitCode {
        let play: Play
        do {
            play = try read()
        } catch {
            Terminal.err(
                "carillon demo: \(error)\n(run it from the top of the repository, or give --world)\n")
            return .usage
        }
        do {
            let signals = try EndSignals()
            let ending = Ending()
            signals.onFirst { ending.resolve(.done) }
            say("starting broker, Redis and APNs simulator …\n")
            let cluster = try await LocalCluster(settings(play))
            let run = DemoRun(
                cluster: cluster, worldFile: play.worldFile, state: play.state, events: play.events,
                isPatient: play.own != nil)
            let code = await perform(run, play, until: ending)
            await cluster.close()
            return code
        } catch {
            Terminal.err("carillon demo: \(error)\n")
            return .failed
        }
    }

    private func read() throws -> Play {
        if FolderEntry.all(in: world) == nil, Files.exists(world) {
            if events != nil {
                throw SetupFault("--events needs a folder; the file of --world contains its own events")
            }
            do {
                let own = try OwnWorld(try Files.lines(world))
                return Play(worldFile: own.worldFile, state: own.state, events: own.events, own: own)
            } catch let fault as SetupFault {
                throw SetupFault("\(world): \(fault)")
            }
        }
        return Play(
            worldFile: try Files.read(world + "/world.json"), state: try Files.lines(world + "/state.ndjson"),
            events: try Files.lines(events ?? world + "/events.ndjson"))
    }

    private func settings(_ play: Play) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.scenario = DemoRun.deadTokens(nowMs: Loop.wallMs())
        // An absolute path, so that the kept configuration works from any folder.
        settings.templates = Self.templates.first { Files.exists($0) }.flatMap { Files.absolute($0) }
        settings.usesRedisCluster = usesCluster
        // The embedded broker waits this long for a consumer that missed the start of the group.
        settings.sessionMs = 6_000
        guard let apps = play.own?.apps, let first = apps.first else { return settings }
        settings.app = first.id
        settings.topic = first.topics[0]
        settings.moreTopics = Array(first.topics.dropFirst())
        settings.tenants = apps.dropFirst().map { LocalCluster.Tenant(id: $0.id, topic: $0.topics[0]) }
        return settings
    }

    /// Waits for the run or the first signal, whichever comes first.
    private func perform(_ run: DemoRun, _ played: Play, until ending: Ending) async -> ExitCode {
        let playing = Task {
            do {
                ending.resolve(try await play(run, played) && !keeps ? .done : .failed)
            } catch {
                if !(error is CancellationError) { Terminal.err("carillon demo: \(error)\n") }
                ending.resolve(.failed)
            }
        }
        let code = await ending.value()
        playing.cancel()
        return code
    }

    /// - Returns: true at the end of the demo. With `--keep` it does not return by itself.
    private func play(_ run: DemoRun, _ played: Play) async throws -> Bool {
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
        if let count = played.own?.madeUp, count > 0 {
            say("users      \(count) without a bind in the file get a generated device each\n")
        }
        say("\n")
        let isInteractive = Terminal.isInteractive
        let outcomes = try await run.play(worker: worker) { settled, total in
            guard isInteractive else { return }
            Terminal.clearLine()
            Terminal.err("\(settled) of \(total) records settled ")
        }
        if isInteractive { Terminal.clearLine() }
        if !printsJSON { Terminal.out(DemoReport.legend) }
        for outcome in outcomes {
            Terminal.out(asJSON: printsJSON, json: DemoReport.json(outcome), text: DemoReport.text(outcome))
        }
        if !printsJSON { Terminal.out(DemoReport.summary(outcomes)) }
        let open = await worker.status().shards.reduce(0) { $0 + $1.pendingRecords }
        if open > 0 { say("\(open) records still wait for a hold, a window or a retry\n") }
        guard keeps else { return true }
        say("\n" + (try hints(outcomes, run.cluster, played, port: port)))
        while true { try await Task.sleep(for: .seconds(3600)) }
    }

    /// Writes the files that the commands name.
    private func hints(
        _ outcomes: [EventOutcome], _ cluster: LocalCluster, _ played: Play, port: UInt16
    ) throws -> TerminalText {
        let configuration = try cluster.writeConfiguration()
        guard let chosen = DemoHints.choose(outcomes, state: played.state, nowMs: Loop.wallMs()) else {
            return "no push was accepted; configuration \(configuration), http://127.0.0.1:\(port)/ until ctrl-C\n"
        }
        let file = try cluster.folder.write(chosen.event + Array("\n".utf8), to: "try.ndjson")
        return DemoHints(
            program: DemoHints.callable(CommandLine.arguments.first ?? "carillon"), configuration: configuration,
            port: port,
            subject: chosen.subject, eventFile: file
        ).text
    }

    private func say(_ text: TerminalText) {
        if printsJSON { Terminal.err(text) } else { Terminal.out(text) }
    }
}
