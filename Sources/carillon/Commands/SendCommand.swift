// SPDX-License-Identifier: Apache-2.0
import APNs
import Console
import Crypto
import EventLoop
import JSON
import Processes
import PushCore
import Worker

/// `carillon send`: sends one push and prints its answer.
struct SendCommand: Command {
    static let spec = CommandSpec(
        name: "send", summary: "one push to one device token, its answer printed",
        details: """
            Uses the app's first credential set, its endpoint and its bundle id. It does not use Kafka or Redis, and it prints the
            token nowhere (other users of this machine can see the arguments of a process).

            exit codes: 0 accepted, 1 not accepted or APNs is down, 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id", required: true),
            .value("token", "HEX", "the device token", required: true),
            .value("alert", "TEXT", "the alert's body", required: true),
            .value("title", "TEXT", "the alert's title"),
            .value("env", "ENV", "production or sandbox (the app's environment)"),
            .value("topic", "BUNDLE", "apns-topic (the app's topic)"),
            .value("payload", "JSON", "custom keys; an `aps` in it is added to ours, which holds the alert"),
            CommandSpec.json,
        ])

    private let path: String
    private let appID: String
    private let token: DeviceToken
    private let alert: String
    private let title: String?
    private let environment: APNsEnvironment?
    private let topic: String?
    private let custom: [JSONTree.Member]
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        appID = arguments.string("app") ?? ""
        alert = arguments.string("alert") ?? ""
        title = arguments.string("title")
        topic = arguments.string("topic")
        isJSON = arguments.has("json")
        guard let token = DeviceToken(arguments.string("token") ?? "") else {
            throw Arguments.UsageError(
                message: "--token needs an even number of hexadecimal digits, at most \(DeviceToken.digitsMax)")
        }
        self.token = token
        if let text = arguments.string("env") {
            guard let environment = APNsEnvironment(rawValue: text) else {
                throw Arguments.UsageError(message: "--env needs production or sandbox; not \"\(text)\"")
            }
            self.environment = environment
        } else {
            environment = nil
        }
        guard let text = arguments.string("payload") else {
            custom = []
            return
        }
        guard let members = (try? JSONTree(parsing: Array(text.utf8)))?.members else {
            throw Arguments.UsageError(message: "--payload needs a JSON object, such as '{\"page\": 3}'")
        }
        custom = members
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        guard let app = AppChoice.find(appID, in: configuration, for: "send") else { return .usage }
        guard let set = app.credentials.first else { return .configuration }
        let credential: APNsCredential
        switch set.load() {
        case .success(let found): credential = found
        case .failure(let problem):
            Terminal.err("\(problem)\n")
            return .configuration
        }
        let headers: PushHeaders
        do throws(PushFault) {
            headers = try PushHeaders(
                topic: topic ?? app.policy.topic, pushType: .alert,
                expirationSeconds: Loop.wallMs() / 1000 + 3600)
        } catch {
            Terminal.err("carillon send: \(error.text)\n")
            return .usage
        }
        let push = Push(
            tag: 1, token: token, headers: headers, id: PushID.random(), payload: payload,
            expiresAtMs: Loop.wallMs() + 30_000)
        let endpoint = app.endpoints[environment ?? app.environment]
        return await send(push, to: endpoint, credential, app.limits.client)
    }

    private func send(
        _ push: Push, to endpoint: APNsEndpoint, _ credential: APNsCredential, _ limits: APNsLimits
    ) async -> ExitCode {
        let client: CommandAPNsClient
        do throws(LoopFault) {
            client = try CommandAPNsClient()
        } catch {
            Terminal.err("carillon send: \(error)\n")
            return .failed
        }
        let place = "\(endpoint.host):\(endpoint.port)"
        var report = SendReport(place: place, id: push.id)
        switch await client.open(endpoint: endpoint, credential: credential, limits: limits) {
        case .failed(let cause): report.problem = "cannot connect: \(cause)"
        case .ready(let milliseconds):
            report.connectMs = milliseconds
            report.take(await client.send(push))
        }
        await client.close()
        Terminal.out(asJSON: isJSON, json: report.json, text: report.text)
        return report.isAccepted ? .done : .failed
    }

    private var payload: [UInt8] {
        var alert = [JSONTree.Member("body", .string(self.alert))]
        if let title { alert.insert(JSONTree.Member("title", .string(title)), at: 0) }
        var aps = [JSONTree.Member("alert", .object(alert)), JSONTree.Member("sound", .string("default"))]
        for member in custom where member.key == "aps" {
            for own in member.value.members ?? [] where own.key != "alert" {
                aps.removeAll { $0.key == own.key }
                aps.append(own)
            }
        }
        return JSONTree.object([JSONTree.Member("aps", .object(aps))] + custom.filter { $0.key != "aps" }).bytes
    }
}

/// The result of the push.
struct SendReport {
    var place: String
    var id: PushID
    var connectMs: Int?
    var isAccepted = false
    var status: Int?
    var reason: String?
    var attempts = 0
    var milliseconds: Int?
    /// The reason for a missing answer.
    var problem: String?

    mutating func take(_ answer: CommandAPNsClient.Answer) {
        switch answer {
        case .notSent(let why): problem = why
        case .credentialRefused(.answer(let status, let reason)):
            self.status = status
            self.reason = reason.text
        case .credentialRefused(let farewell):
            problem = "the credential is refused: \(farewell)"
            if case .goAway(_, let reason) = farewell { self.reason = reason.text }
        case .ended(let outcome, let attempts, let milliseconds, let trouble):
            self.attempts = attempts
            self.milliseconds = milliseconds
            take(outcome)
            if let trouble, let end = problem { problem = "\(trouble); \(end)" }
        }
    }

    private mutating func take(_ outcome: PushOutcome) {
        switch outcome {
        case .accepted(let id):
            isAccepted = true
            status = 200
            self.id = id
        case .rejected(let status, let reason, _), .deferred(let status, let reason, _):
            self.status = status
            self.reason = reason.text
        case .expired: problem = "not accepted within 30 seconds"
        case .superseded: problem = "a newer push with its collapse id took its place"
        case .unprocessed(let cause): problem = "not processed: \(cause.rawValue)"
        case .unknown(let cause, _): problem = "sent \(attempts) times without an answer: \(cause.rawValue)"
        }
    }

    var text: TerminalText {
        var text = isAccepted ? Style.green("✓ accepted") : Style.red("✗ not accepted")
        if let status { text += "  \(status)\(reason.map { " \($0)" } ?? "" as String)" }
        if let problem { text += "  \(problem)" }
        text += "\n  at       \(place)\n  apns-id  \(id)\n"
        if let milliseconds {
            text += "  time     \(milliseconds) ms"
            if let connectMs { text += " (and \(connectMs) ms to connect)" }
            text += attempts > 1 ? ", \(attempts) attempts\n" : "\n"
        }
        return text
    }

    var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("accepted", isAccepted)
        if let status { writer.member("status", Int64(status)) }
        writer.member("reason", ifPresent: reason)
        writer.member("apns_id", id.description)
        writer.member("endpoint", place)
        writer.member("attempts", Int64(attempts))
        if let milliseconds { writer.member("ms", Int64(milliseconds)) }
        if let connectMs { writer.member("connect_ms", Int64(connectMs)) }
        writer.member("problem", ifPresent: problem)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
