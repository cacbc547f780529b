import Console
import EventLoop
import Telemetry
import Worker

/// `carillon run`: the worker, until a signal ends it.
struct RunCommand: Command {
    static let spec = CommandSpec(
        name: "run", summary: "the worker",
        details: """
            Reads the topics, decides, pushes. SIGTERM or SIGINT: reads no more, finishes what is in hand within drain_s,
            commits, exits 0; a second signal ends it at once. Log lines are JSON on standard error.

            exit codes: 0 drained, 70 the Kafka client died for good, 75 not drained in time or the port is taken: try again, 78 bad configuration
            """,
        options: [CommandSpec.config])

    private let path: String

    init(_ arguments: Arguments) {
        path = arguments.string("config") ?? ""
    }

    func run() async -> ExitCode {
        // Before any secret is read; the environment first, since only root can read it afterwards.
        let environment = Configuration.processEnvironment()
        ProcessLimits.forbidDumps()
        let descriptors = ProcessLimits.raiseDescriptors()
        guard let configuration = ConfigurationLoading.load(path, environment: environment, checkingFiles: true) else {
            return .configuration
        }
        Allocator.keepFreed()
        let log = Log(level: configuration.logLevel)
        log.info(
            "limits", ["descriptors": .int(descriptors), "dumps_forbidden": .bool(ProcessLimits.dumpsAreForbidden)])
        do {
            return try await serve(configuration, log: log, manager: ServiceManager(environment: environment))
        } catch let fault as StartFault {
            log.error("cannot start", ["why": .string(fault.description)])
            return fault.kind == .passing ? .tryAgain : .configuration
        } catch {
            log.error("cannot start", ["why": .string("\(error)")])
            return .tryAgain
        }
    }

    private func serve(_ configuration: Configuration, log: Log, manager: ServiceManager) async throws -> ExitCode {
        let signals = try EndSignals()
        let process = try WorkerProcess(configuration: configuration, log: log)
        let ending = Ending()
        signals.onFirst { ending.resolve(.done) }
        try await process.start(onFatal: { ending.resolve(.fatalKafka) })
        manager.ready()
        let watchdog = Task { await Self.notifyAlive(of: process, to: manager) }
        let reason = await ending.value()
        manager.stopping()
        watchdog.cancel()
        let isDrained = await process.stop()
        return reason == .done && !isDrained ? .tryAgain : reason
    }

    /// Signs of life, as long as every shard's loop turns; without them systemd ends the process and starts it anew.
    private static func notifyAlive(of process: WorkerProcess, to manager: ServiceManager) async {
        guard let interval = manager.aliveInterval else { return }
        while !Task.isCancelled {
            if await process.isAlive { manager.alive() }
            try? await Task.sleep(for: interval, tolerance: .zero)
        }
    }
}
