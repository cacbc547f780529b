// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import EventLoop
import JSON
import Processes
import PushCore
import Redis
import Worker

/// `carillon tokens`: restores tokens that were removed by mistake.
struct TokensCommand: Command {
    static let spec = CommandSpec(
        name: "tokens",
        summary: "restore, accept: tokens that were removed because of APNs' answer, or that Redis lost",
        details: """
            restore  restores tokens of the app that were removed for --cause since --since, if neither the token nor its device was
                     bound since. Tokens that their user unbound stay removed. Removed tokens are kept for seven days. --dry-run
                     changes nothing. Needs --app, --cause and --since.
            accept   accepts that Redis lost tokens or returned with older data: workers that stopped reading for it resume within
                     seconds, and users without a token end as no_token. It takes effect at once and takes no other option.

            causes: 410, BadDeviceToken, DeviceTokenNotForTopic (the reasons of carillon_tokens_invalidated_total;
            Unregistered and ExpiredToken are 410).

            exit codes: 0 done, 1 Redis is down, 64 bad usage, 78 bad configuration
            """,
        verbs: ["restore", "accept"],
        options: [
            CommandSpec.config,
            .value("app", "APP", "the app's id (restore)"),
            .value("cause", "CAUSE", "the cause of their removal (restore)"),
            .value("since", "TIME", "2026-11-22T14:05:00Z (or +08:00, or a date), or Unix milliseconds (restore)"),
            .flag("dry-run", "only counts"),
            CommandSpec.json,
        ])

    private let path: String
    /// Nil for `accept`.
    private let restoring: Restoring?
    private let isDryRun: Bool
    private let isJSON: Bool

    private struct Restoring {
        var app: String
        var cause: RemovalBrake.Cause
        var sinceMs: Int64
    }

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        path = arguments.string("config") ?? ""
        isDryRun = arguments.has("dry-run")
        isJSON = arguments.has("json")
        restoring = arguments.verb == "accept" ? nil : try Self.restoring(arguments)
        for option in ["dry-run", "app", "cause", "since"] where restoring == nil && arguments.has(option) {
            throw Arguments.UsageError(
                message: "--\(option) is of `tokens restore`; `tokens accept` takes effect at once")
        }
    }

    private static func restoring(_ arguments: Arguments) throws(Arguments.UsageError) -> Restoring {
        guard let app = arguments.string("app") else { throw Arguments.UsageError(message: "--app is required") }
        let word = arguments.string("cause") ?? ""
        let label = ["Unregistered", "ExpiredToken"].contains(word) ? RemovalBrake.Cause.gone.label : word
        guard let cause = RemovalBrake.Cause.allCases.first(where: { $0.label == label }) else {
            let known = RemovalBrake.Cause.allCases.map(\.label).joined(separator: ", ")
            throw Arguments.UsageError(message: "--cause needs one of \(known); not \"\(word)\"")
        }
        let text = arguments.string("since") ?? ""
        guard let sinceMs = InstantText.milliseconds(text) else {
            throw Arguments.UsageError(
                message: "--since needs a time like 2026-11-22T14:05:00Z, or Unix milliseconds; not \"\(text)\"")
        }
        return Restoring(app: app, cause: cause, sinceMs: sinceMs)
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(path, checkingFiles: false) else { return .configuration }
        if let restoring, AppChoice.find(restoring.app, in: configuration, for: "tokens") == nil { return .usage }
        guard let store = await RedisOpening.open(configuration, for: "tokens") else { return .failed }
        let code: ExitCode
        do throws(RedisFault) {
            if let restoring {
                var restoration = TokenRestoration(
                    store, app: restoring.app, cause: restoring.cause, sinceMs: restoring.sinceMs, isDryRun: isDryRun)
                report(try await restoration.run(), restoring)
            } else {
                try await store.acceptLoss()
                Terminal.out(
                    asJSON: isJSON, json: "{\"accepted\":true}\n",
                    text: "workers that stopped for lost tokens resume\n")
            }
            code = .done
        } catch {
            Terminal.err("carillon tokens: Redis: \(error)\n")
            code = .failed
        }
        await store.close()
        return code
    }

    private func report(_ counts: TokensRestored, _ restoring: Restoring) {
        guard isJSON else {
            return Terminal.out(
                """
                \(counts.found) tokens were removed for \(restoring.cause.label) since then
                \(counts.restored) \(isDryRun ? "would be restored" : "restored")
                \(counts.boundAnew) not: the device or the token was bound since
                \(counts.unbound) not: the user unbound it

                """)
        }
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.member("app", restoring.app)
        writer.member("cause", restoring.cause.label)
        writer.member("since_ms", restoring.sinceMs)
        writer.member("dry_run", isDryRun)
        writer.member("found", Int64(counts.found))
        writer.member("restored", Int64(counts.restored))
        writer.member("bound_anew", Int64(counts.boundAnew))
        writer.member("unbound", Int64(counts.unbound))
        writer.endObject()
        Terminal.out(json: String(decoding: writer.bytes, as: UTF8.self) + "\n")
    }
}
