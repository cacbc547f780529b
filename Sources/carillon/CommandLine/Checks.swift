// SPDX-License-Identifier: Apache-2.0
import APNs
import Console
import EventLoop
import Kafka
import Payload
import PushCore
import Telemetry
import Worker

/// The checks of `check` beyond the configuration's text.
enum Checks {
    // MARK: - Clock

    /// APNs refuses provider tokens that are an hour off. Only a plainly wrong clock can be detected locally.
    static func clock() -> Finding {
        guard Loop.wallMs() > 1_735_689_600_000 else {
            return Finding(.fail, "clock", "system", "it is before 2025 here: set the clock; APNs refuses old tokens")
        }
        return Finding(.ok, "clock", "system", TimeText.iso(Loop.wallMs()))
    }

    /// How many shards a worker starts here, and why so many.
    static func shards(_ configuration: Configuration) -> Finding {
        let count = configuration.shardCount
        let why = configuration.shards == 0 ? "one per processor" : "as configured"
        return Finding(
            .ok, "shards", "shards: \(configuration.shards)",
            "\(counted(count, "shard")), \(why); processors: \(ProcessorCount.present.words)")
    }

    static func zones() -> Finding {
        SystemZones().isPresent
            ? Finding(.ok, "time zones", "system", "/usr/share/zoneinfo")
            : Finding(.fail, "time zones", "system", SystemZones.absence)
    }

    /// Reports a difference between two machines' clocks that is too large for both to be right.
    static func clock(aheadSeconds: Int64, of peer: String, _ place: String) -> [Finding] {
        guard abs(aheadSeconds) > 5 else { return [] }
        if peer == "Redis", abs(aheadSeconds) > 300 {
            return [
                Finding(
                    .fail, "clock", place,
                    "this machine is \(abs(aheadSeconds)) s \(aheadSeconds > 0 ? "ahead of" : "behind") \(peer): "
                        + "a worker reads nothing above 300 s; set the clock")
            ]
        }
        return [
            Finding(
                .warn, "clock", place,
                "this machine is \(abs(aheadSeconds)) s \(aheadSeconds > 0 ? "ahead of" : "behind") \(peer): synchronise "
                    + "both; leases, marks and provider tokens go by it")
        ]
    }

    // MARK: - Topics

    /// Bundle ids that end in a suffix, which the worker adds itself.
    static func topics(_ configuration: Configuration) -> [Finding] {
        configuration.apps.flatMap { app in
            (app.policy.allowedTopics ?? [app.policy.topic]).compactMap { topic in
                AppPolicy.suffix(of: topic).map { suffix in
                    Finding(
                        .warn, "topic", "app \(app.policy.id)",
                        "\(topic) ends in \(suffix): write the bundle id alone, the worker adds the suffix")
                }
            }
        }
    }

    // MARK: - Templates

    /// Templates that a language lacks, and arguments that only one language uses.
    static func templates(_ configuration: Configuration) -> [Finding] {
        configuration.apps.flatMap { app in
            app.templates.templateGaps.map { gap in
                let text =
                    switch gap.kind {
                    case .missing(let others):
                        "\(gap.language) has no template \(gap.id), which \(others.joined(separator: ", ")) has: its users "
                            + "get another language's text"
                    case .argument(let name):
                        "only \(gap.language) uses the argument {\(name)} in the template \(gap.id): is it misspelt? "
                            + "A missing argument is replaced by nothing"
                    }
                return Finding(.warn, "templates", "app \(app.policy.id)", text)
            }
        }
    }

    /// Default languages without a text for messages without content.
    static func genericTexts(_ configuration: Configuration) -> [Finding] {
        configuration.apps.compactMap { app in
            let language = app.templates.defaultLanguage
            guard !language.lowercased().hasPrefix("zh"),
                app.templates.generic(language: language) == Templates.builtInGeneric
            else { return nil }
            return Finding(
                .warn, "templates", "app \(app.policy.id)",
                "\(language) has no generic text: a message without content is pushed as \(Templates.builtInGeneric)")
        }
    }

    // MARK: - Credentials

    /// Each credential set: its expiry and the apps that use it. `credentialProblems` reports unreadable sets.
    static func credentials(_ configuration: Configuration) -> [Finding] {
        configuration.apps.flatMap { app in
            app.credentials.flatMap { set -> [Finding] in
                guard case .success(let credential) = set.load() else { return [] }
                let place = "app \(app.policy.id), \(set.name)"
                return [lasting(credential, place), owner(credential, app.policy, place)].compactMap { $0 }
            } + (app.credentials.contains(where: \.isProviderKey) ? [] : [activities(app.policy)])
        }
    }

    /// Apple takes Live Activities only with a provider key.
    private static func activities(_ policy: AppPolicy) -> Finding {
        Finding(
            .warn, "credential", "app \(policy.id)",
            "it has no provider key (p8), so binds of the types activity and start cannot be served: APNs takes Live Activities "
                + "only with one. Add a credential set with key_file, or let the app bind no such token")
    }

    private static func lasting(_ credential: APNsCredential, _ place: String) -> Finding {
        guard let end = (try? credential.validUntilSeconds()) ?? nil else {
            return Finding(.ok, "credential", place, "a provider key (p8): it never expires")
        }
        let days = (end - Loop.wallMs() / 1000) / 86_400
        let until = Timestamp.text(seconds: end)
        let text = "\(counted(days, "day")) left, until \(until)"
        return days < renewDays
            ? Finding(.warn, "credential", place, text + ": renew it; a running worker loads the new files")
            : Finding(.ok, "credential", place, text)
    }

    /// The subject of an APNs certificate names the bundle id, for some types with a suffix.
    private static func owner(_ credential: APNsCredential, _ policy: AppPolicy, _ place: String) -> Finding? {
        guard let bundle = (try? credential.bundleID()) ?? nil else { return nil }
        let topics = policy.allowedTopics ?? [policy.topic]
        let isOurs = topics.contains { bundle == $0 || bundle.hasPrefix($0 + ".") }
        let names = topics.joined(separator: ", ")
        return isOurs
            ? nil
            : Finding(
                .warn, "credential", place,
                "the certificate is for \(bundle), and the app's topic is \(names): APNs would refuse its pushes")
    }

    /// A certificate with fewer days left must be renewed.
    private static let renewDays = 30

    /// librdkafka's reason against the settings of TLS and SASL as a whole, without asking a broker.
    static func kafkaSignIn(_ configuration: Configuration) -> [Finding] {
        guard let why = configuration.kafka.client(id: "carillon-check").signInRefusal() else { return [] }
        return [Finding(.fail, "kafka", "kafka.options", why)]
    }

    // MARK: - What guards secrets

    /// Key and password files that other users can open.
    static func secretFiles(_ configuration: Configuration) -> [Finding] {
        configuration.secretFiles.compactMap(\.exposure).map { Finding(.warn, problem: $0, subject: "secrets") }
    }

    /// Waived weak links, and waivers that nothing needs. A weak link without a waiver is a configuration problem.
    static func weakLinks(_ configuration: Configuration) -> [Finding] {
        configuration.weakLinks.map { Finding(.waived, $0.link, $0.waiver.rawValue, $0.note) }
            + configuration.idleWaivers.map {
                Finding(.warn, "waivers", $0.rawValue, "nothing needs it: remove it")
            }
    }

    /// The addresses that may use the operator's pages.
    static func pages(_ configuration: Configuration) -> [Finding] {
        let http = configuration.http
        guard !http.isLoopback, http.access.token == nil else { return [] }
        return [
            Finding(
                .warn, "http", "\(http.host):\(http.port)",
                "other machines see the operator's pages without a login: set http.token_file")
        ]
    }
}
