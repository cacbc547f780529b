// SPDX-License-Identifier: Apache-2.0
import PushCore
import Telemetry

extension WorkerProcess {
    /// Reads the configuration again and applies the changes that are possible while the worker runs
    /// (`ConfigurationChange`). The log names the applied keys, and those that take effect at the next start. An
    /// invalid configuration changes nothing.
    ///
    /// Credential files are also checked, changed or not.
    public func reload(path: String, environment: [String: String]) async {
        let known = Set(view.snapshot.apps.map(\.id))
        // Not on this loop: the operator's pages go on while a disk does not answer.
        let read = await onOwnThread { Self.read(path, environment, known: known) }
        switch read {
        case .success(let fresh): await apply(fresh.configuration, fresh.effective, fresh.secrets)
        case .failure(let fault): refuse(fault)
        }
    }

    private struct Fresh: Sendable {
        var configuration: Configuration
        var effective: EffectiveConfiguration
        var secrets: KafkaSecrets
    }

    private static func read(
        _ path: String, _ environment: [String: String], known: Set<String>
    ) -> Result<Fresh, ConfigurationProblems> {
        let effective = Configuration.effective(path: path, environment: environment)
        return Configuration.load(path: path, environment: environment).flatMap { configuration in
            let problems = unreadable(configuration, known: known)
            if !problems.isEmpty { return .failure(ConfigurationProblems(problems: problems)) }
            return effective.map {
                Fresh(configuration: configuration, effective: $0, secrets: KafkaSecrets(configuration.kafka))
            }
        }
    }

    /// Problems with the credentials of new apps. The files of known apps are checked all the time; if a new file is unusable, the
    /// old credential stays in use.
    private static func unreadable(_ configuration: Configuration, known: Set<String>) -> [Problem] {
        var added = configuration
        added.apps.removeAll { known.contains($0.policy.id) }
        return added.credentialProblems()
    }

    private func refuse(_ fault: ConfigurationProblems) {
        reloads.refused.add()
        view.isReloadRefused = true
        for problem in fault.problems.prefix(20) {
            log.error("the configuration cannot be used", ["problem": .string("\(problem)")])
        }
        log.error(
            "reload refused: the previous configuration stays in effect",
            ["problems": .int(fault.problems.count)])
    }

    private func apply(
        _ configuration: Configuration, _ fresh: EffectiveConfiguration, _ freshSecrets: KafkaSecrets
    ) async {
        let change = ConfigurationChange(from: running, to: fresh.values)
        // The result of a reload is logged at the earlier level too.
        log.level = min(log.level, configuration.logLevel)
        drainTime.set(seconds: configuration.drainSeconds)
        for shard in shards {
            do throws(StartFault) {
                try await shard.apply(configuration)
            } catch {
                log.error("a new app cannot be added", ["why": .string(error.description)])
            }
        }
        for key in change.applied { running[key] = fresh.values[key] }
        // The trace box's data: new apps, and each app's rules.
        self.configuration.apps = configuration.apps
        reloads.applied.add()
        view.isReloadRefused = false
        let secrets = kafkaSecrets.changes(to: freshSecrets)
        reloads.pendingKeys.set(change.pending.count + secrets.count)
        reloads.running(running.hash)
        if !secrets.isEmpty {
            log.warning(
                "secrets of Kafka have changed: a restart is needed, until then the old ones are in use",
                ["keys": .string(secrets.joined(separator: ", "))])
        }
        log.info("configuration reloaded", ["changed": .string(Self.list(change.applied))])
        if !change.pending.isEmpty {
            log.warning(
                "these keys take effect at the next start", ["keys": .string(Self.list(change.pending))])
        }
        Self.report(configuration.warnings, to: log)
        log.level = configuration.logLevel
    }

    static func report(_ warnings: [Problem], to log: Log) {
        for warning in warnings { log.warning("the configuration", ["warning": .string("\(warning)")]) }
    }

    private static func list(_ keys: [EffectiveConfiguration.Key]) -> String {
        keys.map(\.description).joined(separator: ", ")
    }
}

/// Metrics of reloads.
final class ReloadMetrics {
    let applied: Counter
    let refused: Counter
    /// Keys that take effect at the next start.
    let pendingKeys: Gauge
    private let registry: MetricsRegistry
    private var infos: [String: Gauge] = [:]
    private static let infosMax = 32

    init(_ registry: MetricsRegistry) {
        self.registry = registry
        func reloads(_ result: String) -> Counter {
            registry.counter(
                "carillon_config_reloads_total", help: "Reloads of the configuration (SIGHUP) by outcome.",
                labels: [("result", result)])
        }
        applied = reloads("applied")
        refused = reloads("refused")
        pendingKeys = registry.gauge(
            "carillon_config_pending_keys",
            help: "Keys of the last reload that take effect at the next start.")
    }

    /// - Parameter hash: of the effective values. There are few; those beyond a bound have no series.
    func running(_ hash: String) {
        for gauge in infos.values { gauge.set(0) }
        guard infos[hash] != nil || infos.count < Self.infosMax else { return }
        let gauge =
            infos[hash]
            ?? registry.gauge(
                "carillon_config_info",
                help: "1: the worker runs with the configuration of this hash (see check --print).",
                labels: [("hash", hash)])
        infos[hash] = gauge
        gauge.set(1)
    }
}
