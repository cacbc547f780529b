// SPDX-License-Identifier: Apache-2.0
import Simulator
import Telemetry

extension LocalCluster.Settings {
    /// Where a worker finds the servers and files of its world.
    public struct Places: Sendable {
        public var brokers: String
        /// A line of the section `redis`, such as `url: redis://localhost`.
        public var redis: String
        public var endpoint: String
        public var caFile: String
        public var keyFile: String
        public var keyID = DemoCredentials.keyID
        public var teamID = DemoCredentials.teamID
        /// By tenant; the others use `keyFile`.
        public var tenantKeyFiles: [String: String] = [:]

        public init(brokers: String, redis: String, endpoint: String, caFile: String, keyFile: String) {
            self.brokers = brokers
            self.redis = redis
            self.endpoint = endpoint
            self.caFile = caFile
            self.keyFile = keyFile
        }
    }

    /// A configuration file for a worker.
    public func configurationText(_ places: Places) -> String {
        let options = kafkaOptions.sorted { $0.key < $1.key }.map { "    \($0.key): \($0.value)\n" }.joined()
        return """
            kafka:
              brokers: \(places.brokers)
              group: carillon
              options:
                session.timeout.ms: \(sessionMs)
                heartbeat.interval.ms: 1000
                fetch.wait.max.ms: \(fetchWaitMs)
            \(options)redis:
              \(places.redis)
            \(redisLines)apps:
              - id: \(app)
                topic: \(topicText)
                environment: production
                endpoint: \(places.endpoint)
                ca_file: \(places.caFile)
                credentials:
            \(credentialLines(places))\(templates.map { "    templates: \($0)\n" } ?? "")\(appLines)\(tenantLines(places))http:
              listen: 127.0.0.1:0
            shards: \(shards)
            log:
              level: \(logLevel.name)
            drain_s: \(drainSeconds)
            \(lines)
            """
    }

    private var topicText: String {
        moreTopics.isEmpty ? topic : "[" + ([topic] + moreTopics).joined(separator: ", ") + "]"
    }

    private func tenantLines(_ places: Places) -> String {
        tenants.map { tenant in
            """
              - id: \(tenant.id)
                topic: \(tenant.topic)
                environment: production
                endpoint: \(tenant.endpoint ?? places.endpoint)
                ca_file: \(places.caFile)
                credentials:
                  key_file: \(places.tenantKeyFiles[tenant.id] ?? places.keyFile)
                  key_id: \(places.keyID)
                  team_id: \(places.teamID)
            \(tenant.lines)
            """
        }.joined(separator: "\n") + (tenants.isEmpty ? "" : "\n")
    }

    /// One set without a name, or several of the same key.
    private func credentialLines(_ places: Places) -> String {
        let indent = credentialNames.isEmpty ? "      " : "        "
        let lines = ["key_file: \(places.keyFile)", "key_id: \(places.keyID)", "team_id: \(places.teamID)"]
            .map { indent + $0 + "\n" }.joined()
        return credentialNames.isEmpty ? lines : credentialNames.map { "      \($0):\n" + lines }.joined()
    }
}
