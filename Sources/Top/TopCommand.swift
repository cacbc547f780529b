// SPDX-License-Identifier: Apache-2.0
public import Console
import Dispatch
import EventLoop
import Fleet
import Telemetry

/// `carillon top`: shows the present state of workers in the terminal.
public struct TopCommand: Command, Sendable {
    public static let spec = CommandSpec(
        name: "top", summary: "the present state of workers in the terminal: rates, lag, connections, what limits them",
        details: """
            Reads /metrics and /statusz of one or several workers and shows the sum: events, pushes and deliveries per second, the
            bounds that delayed work and their share of the time, lag and the oldest unsettled record, connections, breakers and
            brakes, reasons of all outcomes other than ordinary pushes, Redis, CPU. Rates are measured between two looks. q or ctrl-C
            ends it. A worker that does not answer is shown as such until it answers again.

            If standard output is not a terminal, each picture is printed below the last one. --once looks twice, an interval apart,
            and prints one picture.

            exit codes: 0 done, 1 no worker answered (--once), 64 bad usage
            """,
        options: [
            .value(
                "worker", "HOST:PORT", "a worker's operator pages, http.listen (127.0.0.1:9464)", repeatable: true),
            .value("interval", "SECONDS", "between two looks, 0.2-3600 (2)"),
            .value("token-file", "FILE", "the token of http.token_file, if the pages require one"),
            .flag("once", "prints one picture and ends"),
            CommandSpec.json,
        ])

    private let workers: [OperatorClient]
    private let interval: Double
    private let isOnce: Bool
    private let isJSON: Bool
    private static let workersMax = 64

    public init(_ arguments: Arguments) throws(Arguments.UsageError) {
        isOnce = arguments.has("once")
        isJSON = arguments.has("json")
        let text = arguments.string("interval") ?? "2"
        guard let interval = Double(text.hasSuffix("s") ? String(text.dropLast()) : text),
            (0.2...3600).contains(interval)
        else { throw Arguments.UsageError(message: "--interval needs seconds, 0.2-3600; not \"\(text)\"") }
        self.interval = interval
        let token = try Self.token(arguments.string("token-file"))
        var workers: [OperatorClient] = []
        let given = arguments.strings("worker")
        guard given.count <= Self.workersMax else {
            throw Arguments.UsageError(message: "--worker: at most \(Self.workersMax)")
        }
        for address in given.isEmpty ? ["127.0.0.1:9464"] : given {
            guard let client = OperatorClient(address, token: token) else {
                throw Arguments.UsageError(message: "--worker needs HOST:PORT; not \"\(address)\"")
            }
            if !workers.contains(where: { $0.address == client.address }) { workers.append(client) }
        }
        self.workers = workers
    }

    private static func token(_ path: String?) throws(Arguments.UsageError) -> String? {
        guard let path else { return nil }
        do throws(FileFault) {
            let bytes = try Files.read(path).filter { $0 > 0x20 }
            guard !bytes.isEmpty, bytes.count <= 1_024, bytes.allSatisfy({ $0 < 0x7F }) else {
                throw FileFault("\(path): contains no token")
            }
            return String(decoding: bytes, as: UTF8.self)
        } catch {
            throw Arguments.UsageError(message: "--token-file: \(error)")
        }
    }

    public func run() async -> ExitCode {
        do throws(LoopFault) {
            let stop = StopFlag(try EndSignals())
            return isOnce ? once(stop) : watch(stop)
        } catch {
            Terminal.err("carillon top: \(error)\n")
            return .failed
        }
    }

    private func once(_ stop: StopFlag) -> ExitCode {
        let first = askAll()
        stop.sleep(until: Loop.monotonicNanos() &+ UInt64(interval * 1e9))
        let view = view(askAll(), after: first)
        show(view)
        return view.workers.contains { $0.state != .away } ? .done : .failed
    }

    private func watch(_ stop: StopFlag) -> ExitCode {
        if !isJSON, let screen = Screen() {
            draw(on: screen, stop)
            screen.close()
            return .done
        }
        var last: [WorkerLook] = []
        while !stop.isSet {
            let begun = Loop.monotonicNanos()
            let looks = askAll()
            show(view(looks, after: last))
            last = looks
            stop.sleep(until: begun &+ UInt64(interval * 1e9))
        }
        return .done
    }

    /// Runs until q or a signal. Workers are asked on another thread, so a silent worker delays neither keys nor a new
    /// size.
    private func draw(on screen: Screen, _ stop: StopFlag) {
        let answers = Guarded<[WorkerLook]?>(nil)
        var last: [WorkerLook] = []
        var lines: (Int) -> [TerminalText] = { _ in ["asking …"] }
        var drawn = (width: 0, height: 0)
        var isAsking = false
        var next = Loop.monotonicNanos()
        while !stop.isSet {
            let now = Loop.monotonicNanos()
            if !isAsking, now >= next {
                (isAsking, next) = (true, now &+ UInt64(interval * 1e9))
                DispatchQueue.global().async { [self] in
                    let looks = askAll()
                    answers.withLock { $0 = looks }
                }
            }
            let looks = answers.withLock { answers in
                defer { answers = nil }
                return answers
            }
            if let looks {
                let view = view(looks, after: last)
                (last, isAsking, drawn) = (looks, false, (0, 0))
                lines = { TopText.lines(view, width: $0) }
            }
            let size = screen.size
            if size != drawn {
                screen.draw([head] + lines(size.width))
                drawn = size
            }
            let key = screen.key(until: now &+ 100_000_000) { stop.isSet }
            if key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { return }
        }
    }

    private var head: TerminalText {
        Style.bold("carillon top") + Style.dim("  every \(FigureText.number(interval)) s, q ends it")
    }

    private func show(_ view: FleetView) {
        if isJSON { return Terminal.out(json: TopJSON.line(view, atMs: Loop.wallMs())) }
        let lines = TopText.lines(view, width: Screen.size?.width ?? 120)
        Terminal.out(lines.map { $0 + "\n" }.joined() + (isOnce ? "" : "\n"))
    }

    private func view(_ looks: [WorkerLook], after last: [WorkerLook]) -> FleetView {
        FleetView(looks, after: last, wallSeconds: Double(Loop.wallMs()) / 1000)
    }

    /// Asks all workers at once, so that one without an answer delays no other.
    private func askAll() -> [WorkerLook] {
        let looks = Guarded<[Int: WorkerLook]>([:])
        let asked = DispatchGroup()
        for (index, worker) in workers.enumerated() {
            DispatchQueue.global().async(group: asked) {
                let look = worker.ask()
                looks.withLock { $0[index] = look }
            }
        }
        asked.wait()
        return looks.withLock { looks in workers.indices.compactMap { looks[$0] } }
    }
}
