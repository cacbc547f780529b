// SPDX-License-Identifier: Apache-2.0
import APNs
import Console
import EventLoop
import JSON
import Processes
import PushCore
import Worker

/// `carillon channel`: broadcast channels of Live Activities, and a broadcast to one of them.
struct ChannelCommand: Command {
    static let spec = CommandSpec(
        name: "channel", summary: "broadcast channels of Live Activities: create, list, read, delete, send",
        details: """
            create  creates a channel and prints its id (--keep-last: APNs stores the last broadcast for offline devices)
            list    lists the app's channels        read    prints a channel's storage policy
            delete  deletes a channel               send    sends --payload to all followers of the channel

            Uses the app's first credential set, which must be a provider key, and its bundle id. Channel requests go to Apple's own
            host for them (api-manage-broadcast.push.apple.com:2196, .sandbox :2195), broadcasts to the host for pushes. If the app has
            an endpoint of its own, both go there; --endpoint names another one.

            exit codes: 0 done, 1 refused or APNs is down, 64 bad usage, 78 bad configuration
            """,
        verbs: ["create", "list", "read", "delete", "send"],
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id", required: true),
            .value("channel", "ID", "the channel (read, delete, send)"),
            .value("payload", "JSON", "send: the whole payload, an object with `aps`"),
            .value("priority", "N", "send: 10, 5 or 1 (10)"),
            .value(
                "expiration", "SECONDS", "send: Unix time until which APNs may keep it; 0 if nothing is stored (0)"),
            .flag("keep-last", "create: stores the last broadcast"),
            .value("env", "ENV", "production or sandbox (the app's environment)"),
            .value("endpoint", "URL", "https://host:port in place of the usual one"),
            CommandSpec.json,
        ])

    private let path: String
    private let appID: String
    private let request: BroadcastRequest
    private let environment: APNsEnvironment?
    private let endpoint: APNsEndpoint?
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        appID = arguments.string("app") ?? ""
        isJSON = arguments.has("json")
        request = try Self.request(arguments)
        environment = arguments.string("env").flatMap { APNsEnvironment(rawValue: $0) }
        if let text = arguments.string("env"), environment == nil {
            throw Arguments.UsageError(message: "--env needs production or sandbox; not \"\(text)\"")
        }
        do throws(APNsFault) {
            if let url = arguments.string("endpoint") {
                endpoint = try APNsEndpoint(url: url)
            } else {
                endpoint = nil
            }
        } catch {
            throw Arguments.UsageError(message: error.description)
        }
    }

    private static func request(_ arguments: Arguments) throws(Arguments.UsageError) -> BroadcastRequest {
        let channel = arguments.string("channel")
        func named() throws(Arguments.UsageError) -> String {
            guard let channel else { throw Arguments.UsageError(message: "--channel is required") }
            return channel
        }
        switch arguments.verb {
        case "create": return .create(keepsLast: arguments.has("keep-last"))
        case "read": return .read(channel: try named())
        case "delete": return .delete(channel: try named())
        case "send":
            let payload = Array((arguments.string("payload") ?? "").utf8)
            guard let aps = (try? JSONTree(parsing: payload))?["aps"]?.members, !aps.isEmpty else {
                throw Arguments.UsageError(
                    message: "--payload needs a JSON object with a filled `aps`, such as '{\"aps\": {…}}'")
            }
            let number = UInt8(clamping: try arguments.int("priority", default: 10))
            guard let priority = PushPriority(rawValue: number) else {
                throw Arguments.UsageError(message: "--priority needs 10, 5 or 1")
            }
            return .send(
                channel: try named(), payload: payload,
                expirationSeconds: Int64(try arguments.int("expiration", default: 0)), priority: priority)
        default: return .list
        }
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        guard let app = AppChoice.find(appID, in: configuration, for: "channel") else { return .usage }
        guard let set = app.credentials.first else { return .configuration }
        if let problem = request.problem(bundleID: app.policy.topic) {
            Terminal.err("carillon channel: \(problem)\n")
            return .usage
        }
        let credential: APNsCredential
        switch set.load() {
        case .success(let found): credential = found
        case .failure(let problem):
            Terminal.err("\(problem)\n")
            return .configuration
        }
        let place = place(app)
        do {
            let client = try CommandBroadcastClient()
            let result = await client.perform(request, bundleID: app.policy.topic, at: place, credential)
            await client.close()
            return report(result, "\(place.host):\(place.port)")
        } catch {
            Terminal.err("carillon channel: \(error)\n")
            return .failed
        }
    }

    private func place(_ app: Configuration.App) -> APNsEndpoint {
        let environment = environment ?? app.environment
        let usual = app.endpoints[environment]
        if var endpoint {
            endpoint.caFile = usual.caFile
            endpoint.proxy = usual.proxy
            return endpoint
        }
        if case .send = request { return usual }
        let isApples = [APNsEndpoint.production.host, APNsEndpoint.sandbox.host].contains(usual.host)
        guard isApples else { return usual }
        var endpoint = environment == .production ? APNsEndpoint.channels : APNsEndpoint.channelsSandbox
        endpoint.proxy = usual.proxy
        return endpoint
    }

    private func report(_ result: Result<BroadcastAnswer, BroadcastFault>, _ place: String) -> ExitCode {
        switch result {
        case .failure(let fault):
            Terminal.err("carillon channel: \(place): \(fault)\n")
            return .failed
        case .success(let answer):
            Terminal.out(asJSON: isJSON, json: json(answer, place), text: text(answer))
            return answer.isDone ? .done : .failed
        }
    }

    private func text(_ answer: BroadcastAnswer) -> TerminalText {
        let tree = try? JSONTree(parsing: answer.body)
        guard answer.isDone else {
            return "\(Style.red("✗ refused"))  \(answer.status) \(tree?["reason"]?.string ?? "" as String)\n"
        }
        switch request {
        case .create: return "\(answer.channel ?? "?" as String)\n"
        case .list:
            return (tree?["channels"]?.array ?? []).compactMap(\.string).map { "\($0)\n" as TerminalText }.joined()
        case .read:
            return tree?["message-storage-policy"]?.int == 1 ? "keeps the last broadcast\n" : "keeps nothing\n"
        case .delete, .send: return "\(Style.green("✓ done"))  \(answer.status)\n"
        }
    }

    private func json(_ answer: BroadcastAnswer, _ place: String) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("done", answer.isDone)
        writer.member("status", Int64(answer.status))
        writer.member("channel", ifPresent: answer.channel)
        writer.member("request_id", ifPresent: answer.requestID)
        writer.member("endpoint", place)
        if let tree = try? JSONTree(parsing: answer.body) {
            writer.key("answer")
            writer.raw(tree.bytes)
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
