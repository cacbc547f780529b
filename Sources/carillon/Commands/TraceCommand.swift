import Console
import EventLoop
import Processes
import PushCore
import Redis
import Worker

/// `carillon trace`: what did happen to a user's messages.
struct TraceCommand: Command {
    static let spec = CommandSpec(
        name: "trace", summary: "what did happen to a user's messages: every step's verdict, every device's outcome",
        details: """
            Reads what workers kept of the last trace.ttl_h hours: time, event, what each step said, and for each device
            the outcome with APNs' status, apns_id, badge, attempts and latency. Ids and codes only: neither texts nor
            tokens are kept. A message that is still in work appears when it has ended; `carillon explain` tells what
            would happen to one that never came.

            exit codes: 0 something was found, 1 nothing was (the reason is told) or Redis is away, 64 bad usage,
            78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id", required: true),
            .value("user", "UID", "the user's id", required: true),
            .value(
                "msg", "ID",
                "only this msg_id (of a Live Activity its event_id): one look, where else all keys are scanned"),
            CommandSpec.json,
        ])

    private let path: String
    private let app: String
    private let uid: String
    private let message: String?
    private let isJSON: Bool

    init(_ arguments: Arguments) {
        path = arguments.string("config") ?? ""
        app = arguments.string("app") ?? ""
        uid = arguments.string("user") ?? ""
        message = arguments.string("msg")
        isJSON = arguments.has("json")
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        guard AppChoice.find(app, in: configuration, for: "trace") != nil else { return .usage }
        guard let store = await RedisOpening.open(configuration, for: "trace") else { return .failed }
        var code = ExitCode.failed
        do throws(RedisFault) {
            code = try await report(store, TracePlan(configuration.trace), configuration.trace)
        } catch {
            Terminal.err("carillon trace: Redis: \(error)\n")
        }
        await store.close()
        return code
    }

    private func report(
        _ store: StateReader, _ plan: TracePlan, _ settings: Configuration.Trace
    ) async throws(RedisFault) -> ExitCode {
        let records: [TraceRecord]
        if let message {
            records = try await store.trace(app: app, uid: uid, message: message, plan: plan, nowMs: Loop.wallMs())
        } else {
            records = try await store.traces(app: app, uid: uid, plan: plan, nowMs: Loop.wallMs())
        }
        if isJSON {
            for record in records { Terminal.out(json: TraceText.json(record, app: app, uid: uid)) }
        } else if !records.isEmpty {
            Terminal.out(TraceText.people(records, app: app, uid: uid, hours: settings.ttlHours))
        }
        if !records.isEmpty { return .done }
        Terminal.err("carillon trace: \(try await absence(store, plan, settings))\n")
        return .failed
    }

    /// Why there may be nothing.
    private func absence(
        _ store: StateReader, _ plan: TracePlan, _ settings: Configuration.Trace
    ) async throws(RedisFault) -> String {
        let what = message.map { "of message \($0) for \(uid)" } ?? "of \(uid)"
        let nothing = "nothing \(what) in the last \(settings.ttlHours) h"
        guard plan.covers(app: app, uid: uid) else {
            return settings.sample == 0
                ? "\(nothing): trace.sample is 0, no traces are kept"
                : "\(nothing): trace.sample (\(settings.sample)) leaves this user out, but for failures"
        }
        guard let message else { return "\(nothing): no event named this user, or the worker has not read it yet" }
        switch try await store.progress(app: app, uid: uid, message: message) {
        case .begun?:
            return "\(nothing) yet: it is in work (waiting for an ack, a hold, a window or a retry), "
                + "or its worker died and it will be resumed"
        case .finished?:
            return "\(nothing), but it was finished: its trace was not kept"
        case .revokedOnly?:
            return "\(nothing): only its recall has come, not the message itself"
        case nil:
            return "\(nothing): no worker has taken it up for this user. He may be its sender, excluded or no member; "
                + "the record may be unread (see the lag) or bad (see the dead-letter topic)"
        }
    }
}
