import APNs
import EventLoop
import Foundation
import Kafka
import Processes
import PushCore
import Redis
import Worker

/// What `check` looks at beyond the configuration's text.
enum Checks {
    // MARK: - Clock

    /// APNs refuses provider tokens that are an hour off; only what is plainly wrong can be seen from here.
    static func clock() -> Finding {
        guard Loop.wallMs() > 1_735_689_600_000 else {
            return Finding(.fail, "clock", "system", "it is before 2025 here: set the clock; APNs refuses old tokens")
        }
        return Finding(.ok, "clock", "system", "\(Date().formatted(.iso8601))")
    }

    /// Where our clock and that of another machine are further apart than both can be right.
    static func clock(aheadSeconds: Int64, of peer: String, _ place: String) -> [Finding] {
        guard abs(aheadSeconds) > 5 else { return [] }
        return [
            Finding(
                .warn, "clock", place,
                "this machine is \(abs(aheadSeconds)) s \(aheadSeconds > 0 ? "ahead of" : "behind") \(peer): synchronise "
                    + "both; leases, marks and provider tokens go by it")
        ]
    }

    // MARK: - Credentials

    /// Each set, how long it lasts yet, and whom it is for. Sets that cannot be read are told by `credentialProblems`.
    static func credentials(_ configuration: Configuration) -> [Finding] {
        configuration.apps.flatMap { app in
            app.credentials.flatMap { set -> [Finding] in
                guard case .success(let credential) = set.load() else { return [] }
                let place = "app \(app.policy.id), \(set.name)"
                return [lasting(credential, place), owner(credential, app.policy, place)].compactMap { $0 }
            }
        }
    }

    private static func lasting(_ credential: APNsCredential, _ place: String) -> Finding {
        guard let end = (try? credential.validUntilSeconds()) ?? nil else {
            return Finding(.ok, "credential", place, "a provider key, which has no end")
        }
        let days = (end - Loop.wallMs() / 1000) / 86_400
        let until = Date(timeIntervalSince1970: TimeInterval(end)).formatted(.iso8601)
        let text = "\(days) day\(days == 1 ? "" : "s") left, until \(until)"
        return days < renewDays
            ? Finding(.warn, "credential", place, text + ": renew it; a running worker takes the new files over")
            : Finding(.ok, "credential", place, text)
    }

    /// An APNs certificate's subject names the bundle id, for some types with a suffix.
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

    /// A certificate with less is to be renewed.
    private static let renewDays = 30

    // MARK: - What guards secrets

    /// Files of keys and passwords that others than the owner can open.
    static func secretFiles(_ configuration: Configuration) -> [Finding] {
        configuration.secretFiles.compactMap(\.exposure).map { Finding(.warn, problem: $0, subject: "secrets") }
    }

    /// Those that are waived, and waivers that nothing needs; what is not waived is a problem of the configuration.
    static func weakLinks(_ configuration: Configuration) -> [Finding] {
        configuration.weakLinks.map { Finding(.waived, $0.link, $0.waiver.rawValue, $0.note) }
            + configuration.idleWaivers.map {
                Finding(.warn, "waivers", $0.rawValue, "nothing needs it any more: take it away")
            }
    }

    /// Whom the operator's pages answer.
    static func pages(_ configuration: Configuration) -> [Finding] {
        let http = configuration.http
        guard !http.isLoopback, http.access.token == nil else { return [] }
        return [
            Finding(
                .warn, "http", "\(http.host):\(http.port)",
                "other machines see the operator's pages without a login: set http.token_file")
        ]
    }

    // MARK: - Kafka

    static func kafka(_ configuration: Configuration) -> [Finding] {
        let section = configuration.kafka
        let metadata: ClusterMetadata
        do throws(KafkaFault) {
            metadata = try ClusterMetadata.fetch(section.client(id: "carillon-check"), timeoutMs: 5_000)
        } catch {
            return [
                Finding(
                    .fail, "kafka", section.brokers,
                    "\(error); are the brokers running, and are kafka.brokers and kafka.options right?")
            ]
        }
        let count = metadata.brokers.count
        var findings = [Finding(.ok, "kafka", section.brokers, "\(count) broker\(count == 1 ? "" : "s")")]
        // Nothing is written to it unless `state_results` asks for that.
        for (key, name) in section.topics.all where key != "state_results" || configuration.stateResults {
            findings.append(topic(name, key: key, in: metadata))
        }
        return findings
    }

    private static func topic(_ name: String, key: String, in metadata: ClusterMetadata) -> Finding {
        guard let topic = metadata.topic(name) else {
            return Finding(.fail, "topic", name, "missing: create it, or name another as kafka.topics.\(key)")
        }
        if let error = topic.error { return Finding(.fail, "topic", name, "\(error): see the rights of this user") }
        let count = topic.partitions.count
        if !topic.leaderless.isEmpty {
            let list = topic.leaderless.map(String.init).joined(separator: ", ")
            return Finding(.fail, "topic", name, "partitions without a leader: \(list); see the brokers")
        }
        return Finding(.ok, "topic", name, "\(count) partition\(count == 1 ? "" : "s")")
    }

    // MARK: - Redis

    static func redis(_ configuration: Configuration) async -> [Finding] {
        let place = configuration.redis.place
        let store: StateReader
        do throws(RedisOpeningFault) {
            store = try await RedisOpening.open(configuration)
        } catch {
            return [Finding(.fail, "redis", place, error.message)]
        }
        var findings: [Finding] = []
        do throws(RedisFault) {
            let started = Loop.monotonicNanos()
            try await store.ping()
            let micros = (Loop.monotonicNanos() - started) / 1000
            for (place, facts) in await store.servers {
                let mode = facts.mode.map { ", \($0.rawValue)" } ?? ""
                findings.append(
                    Finding(
                        .ok, "redis", place,
                        "\(facts.version ?? "unknown version")\(mode), runs scripts, a read answered in \(micros) µs"))
                findings.append(role(facts, place))
                findings.append(eviction(facts, place))
                findings.append(persistence(facts, place))
                if let ahead = facts.clockAheadMs { findings += clock(aheadSeconds: ahead / 1000, of: "Redis", place) }
            }
        } catch {
            findings.append(Finding(.fail, "redis", place, "\(error)"))
        }
        findings.append(Finding(.ok, "redis", "rights", RedisRights.line(configuration.redis.topology)))
        await store.close()
        return findings
    }

    private static func role(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.isReplica {
        case true?:
            Finding(
                .fail, "redis", place,
                "is a replica and takes no writes: pushes would go without a badge; give its master as redis.url")
        case false?: Finding(.ok, "redis", place, "is a master")
        case nil:
            Finding(
                .warn, "redis", place,
                "does not tell its version and role: grant INFO, or see to it that it is a master of 7.0 or newer")
        }
    }

    /// What a server loses at its end, its users lose: see docs/operations.md, Redis.
    private static func persistence(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.keepsLog {
        case true?: Finding(.ok, "redis", place, "appendonly yes")
        case false?:
            Finding(
                .warn, "redis", place,
                "appendonly no: its end takes what it was told since its last snapshot, marks (pushed twice) and tokens "
                    + "(never pushed) among it; set appendonly yes")
        case nil: Finding(.warn, "redis", place, "does not tell whether it persists: see to it that appendonly is yes")
        }
    }

    /// An evicted mark pushes twice, an evicted token never again.
    private static func eviction(_ facts: RedisServerFacts, _ place: String) -> Finding {
        switch facts.evictionPolicy {
        case RedisServerFacts.safePolicy: Finding(.ok, "redis", place, "maxmemory-policy noeviction")
        case let policy?:
            Finding(
                .warn, "redis", place,
                "maxmemory-policy \(policy): state may vanish; set maxmemory-policy noeviction")
        case nil:
            Finding(.warn, "redis", place, "does not tell maxmemory-policy: see to it that it is noeviction")
        }
    }
}
