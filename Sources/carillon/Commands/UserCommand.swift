// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Processes
import PushCore
import Redis
import Worker

/// `carillon user`: shows the stored state of one user, or removes it.
struct UserCommand: Command {
    static let spec = CommandSpec(
        name: "user", summary: "the stored data of a user: presence, settings, tokens (hashed), badge",
        details:
            "--forget removes all of it, as the record `forget` does; gateways' presence stays\nexit codes: 0 done, 1 Redis is down, 64 bad usage, 78 bad configuration",
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id", required: true),
            .value("user", "UID", "the user's id", required: true),
            .flag("forget", "remove everything stored about the user"),
            CommandSpec.json,
        ])

    private let path: String
    private let app: String
    private let uid: String
    private let isJSON: Bool
    private let forgets: Bool

    init(_ arguments: Arguments) {
        path = arguments.string("config") ?? ""
        app = arguments.string("app") ?? ""
        uid = arguments.string("user") ?? ""
        isJSON = arguments.has("json")
        forgets = arguments.has("forget")
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        guard let found = AppChoice.find(app, in: configuration, for: "user") else { return .usage }
        guard let store = await RedisOpening.open(configuration, for: "user") else { return .failed }
        let code: ExitCode
        do throws(RedisFault) {
            if forgets { try await UserRemoval(store).forget(app: app, uid: uid) }
            let facts = try await UserReads(store).user(app: app, uid: uid)
            Terminal.out(
                asJSON: isJSON, json: UserText.json(facts, app: app, uid: uid),
                text: UserText.people(facts, of: found.policy, uid: uid))
            code = .done
        } catch {
            Terminal.err("carillon user: Redis: \(error)\n")
            code = .failed
        }
        await store.close()
        return code
    }
}

/// Finds the app of `--app`.
enum AppChoice {
    /// - Returns: nil after printing the known apps to standard error.
    static func find(_ id: String, in configuration: Configuration, for command: String) -> Configuration.App? {
        if let app = configuration.apps.first(where: { $0.policy.id == id }) { return app }
        let known = configuration.apps.map(\.policy.id).joined(separator: ", ")
        Terminal.err("carillon \(command): no app \"\(id)\" in the configuration; there is \(known)\n")
        return nil
    }
}
