// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Processes
import Redis
import Worker

/// `carillon trace`: shows the recorded decisions on a user's messages.
struct TraceCommand: Command {
    static let spec = CommandSpec(
        name: "trace", summary: "the recorded decisions on a user's messages: every step, every device's outcome",
        details: """
            Reads the traces of the last trace.ttl_h hours: time, event, the outcome of each step, and for each device the
            outcome with APNs' status, apns_id, badge, attempts and latency. Traces have ids and codes, never texts or
            tokens. A message appears after its work has ended. Without --msg the events that have begun and not ended, and the
            devices with a push in carillon.parked, follow. `carillon explain` shows the decision on a message that never
            arrived.

            exit codes: 0 something was found, 1 nothing was found (with the reason) or Redis is down, 64 bad usage,
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
            code = try await report(store, configuration.trace)
        } catch {
            Terminal.err("carillon trace: Redis: \(error)\n")
        }
        await store.close()
        return code
    }

    private func report(_ store: StateReader, _ settings: Configuration.Trace) async throws(RedisFault) -> ExitCode {
        switch try await TraceReads(store).report(
            app: app, uid: uid, message: message, settings: settings, nowMs: Loop.wallMs())
        {
        case .records(let records, let waiting):
            if isJSON {
                for record in records { Terminal.out(json: TraceText.json(record, app: app, uid: uid)) }
                for push in waiting { Terminal.out(json: TraceText.json(push, app: app, uid: uid)) }
            } else {
                Terminal.out(TraceText.people(records, app: app, uid: uid, hours: settings.ttlHours))
                for push in waiting { Terminal.out(TraceText.people(push)) }
            }
            return .done
        case .absent(let why):
            Terminal.err("carillon trace: \(why)\n")
            return .failed
        }
    }
}
