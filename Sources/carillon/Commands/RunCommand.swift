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

            exit codes: 0 drained, 70 the Kafka client died for good, 75 not drained in time, 78 bad configuration
            """,
        options: [CommandSpec.config])

    private let path: String

    init(_ arguments: Arguments) {
        path = arguments.string("config") ?? ""
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: true) else { return .configuration }
        Allocator.keepFreed()
        let log = Log(level: configuration.logLevel)
        do {
            let signals = try EndSignals()
            let process = try WorkerProcess(configuration: configuration, log: log)
            let ending = Ending()
            signals.onFirst { ending.resolve(.done) }
            try await process.start(onFatal: { ending.resolve(.fatalKafka) })
            let reason = await ending.value()
            let isDrained = await process.stop()
            return reason == .done && !isDrained ? .watchdog : reason
        } catch {
            log.error("cannot start", ["why": .string("\(error)")])
            return .configuration
        }
    }
}
