// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import Telemetry
import Worker

/// `carillon run`: the worker, until a signal stops it.
struct RunCommand: Command {
    static let spec = CommandSpec(
        name: "run", summary: "the worker",
        details: """
            Reads the topics, decides, pushes. On SIGTERM or SIGINT it stops reading, finishes its work within drain_s, commits and
            exits with 0; a second signal ends it at once. Log lines are JSON on standard error.

            On SIGHUP it reads the configuration again and applies the keys that can change in a running worker: log.level, drain_s,
            new apps, and of each app its rules, texts, credentials and limits.rate, background_per_hour, share, removals and
            suspects. The log names the changes and the keys that take effect at the next start. An unusable configuration changes
            nothing.

            exit codes: 0 drained, 70 the Kafka client failed permanently, 75 not drained in time or the port is in use: try again,
            78 bad configuration, no app has a usable credential, or workers of another group use the same Redis
            """,
        options: [
            CommandSpec.config,
            .flag(
                "stage-times",
                "counts in /metrics the processor time of each stage (carillon_stage_seconds_total), as bench --stages shows it"
            ),
        ])

    private let path: String
    private let timesStages: Bool

    init(_ arguments: Arguments) {
        path = arguments.string("config") ?? ""
        timesStages = arguments.has("stage-times")
    }

    func run() async -> ExitCode {
        // A reload requested before the worker has started must not end the process.
        signal(SIGHUP, SIG_IGN)
        // Read before any secret. The environment comes first, because afterwards only root can read it.
        let environment = Configuration.processEnvironment()
        ProcessLimits.forbidDumps()
        let descriptors = ProcessLimits.raiseDescriptors()
        guard let configuration = ConfigurationLoading.load(path, environment: environment, checkingFiles: true) else {
            return .configuration
        }
        if let shortage = ProcessLimits.shortage(shards: configuration.shardCount, descriptors: descriptors) {
            Terminal.err("carillon: \(shortage)\n")
            return .configuration
        }
        Allocator.keepFreed()
        Allocator.returnFreedSoon()
        let log = Log(level: configuration.logLevel)
        log.info(
            "limits", ["descriptors": .int(descriptors), "dumps_forbidden": .bool(ProcessLimits.dumpsAreForbidden)])
        do {
            return try await serve(configuration, environment, log: log)
        } catch let fault as StartFault {
            log.error("cannot start", ["why": .string(fault.description)])
            return fault.kind == .passing ? .tryAgain : .configuration
        } catch {
            log.error("cannot start", ["why": .string("\(error)")])
            return .tryAgain
        }
    }

    private func serve(
        _ configuration: Configuration, _ environment: [String: String], log: Log
    ) async throws -> ExitCode {
        let manager = ServiceManager(environment: environment)
        let signals = try EndSignals()
        let process = try WorkerProcess(
            configuration: configuration,
            effective: try? Configuration.effective(path: path, environment: environment).get(),
            log: log, timesStages: timesStages)
        let ending = Ending()
        signals.onFirst { [drain = process.drainTime] in
            ending.resolve(.done)
            EndWatchdog.arm(seconds: drain.seconds) {
                log.error("the orderly end hangs: the process ends without it", ["drain_s": .double(drain.seconds)])
                EndWatchdog.end(.tryAgain)
            }
        }
        try await process.start(onFatal: { ending.resolve($0 == .kafka ? .fatalKafka : .configuration) })
        let reloads = Task { [path] in
            for await _ in Self.hangUps(signals) { await process.reload(path: path, environment: environment) }
        }
        defer { reloads.cancel() }
        manager.ready()
        let watchdog = Task { await Self.notifyAlive(of: process, to: manager) }
        let reason = await ending.value()
        manager.stopping()
        watchdog.cancel()
        let isDrained = await process.stop()
        return reason == .done && !isDrained ? .tryAgain : reason
    }

    /// Reloads run one after another. Of the signals during a reload, one is kept.
    private static func hangUps(_ signals: EndSignals) -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { stream in signals.onHangUp { stream.yield() } }
    }

    /// Reports to systemd while every shard's loop turns. Without these reports systemd restarts the process.
    private static func notifyAlive(of process: WorkerProcess, to manager: ServiceManager) async {
        guard let interval = manager.aliveInterval else { return }
        while !Task.isCancelled {
            if await process.isAlive { manager.alive() }
            try? await Task.sleep(for: interval, tolerance: .zero)
        }
    }
}
