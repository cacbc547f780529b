// SPDX-License-Identifier: Apache-2.0
import Processes
package import Simulator
import StageWords
import Worker

/// What a test does with Kafka, Redis and APNs.
extension Stage {
    // MARK: - Brokers

    /// The brokers take no records of workers until this ends.
    package func refuseRecords(_ isRefusing: Bool) {
        let topics = Configuration.Topics()
        for topic in topics.all where topic.name != topics.events && topic.name != topics.userState {
            for partition in 0..<settings.partitions { kafka.setLeaderless(topic.name, partition, isRefusing) }
        }
    }

    // MARK: - Redis

    /// What gateways and the IM backend write.
    package func redis(_ commands: [String]) throws {
        for command in commands {
            let answer = try redisText(command)
            if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
        }
    }

    /// Of a stage with `usesRedisCluster`.
    package var cluster: StageCluster {
        get throws {
            guard let redisCluster else { throw SetupFault("there is no cluster") }
            return redisCluster
        }
    }

    /// The server's answer as it came, line ends as blanks.
    package func redisText(_ command: String) throws -> String {
        String(decoding: redisCluster?.inline(command) ?? redis.inline(command), as: UTF8.self)
            .split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    // MARK: - APNs

    /// From now on APNs answers every push with this; nil: as usual.
    package func answerPushes(_ answer: ScenarioAnswer?) {
        let rules = answer.map { [ScenarioRule(ScenarioRule.Match(), .answer($0))] } ?? []
        apns.set(Scenario(rules: rules))
    }

    /// The simulator refuses every connection until `bringAPNsUp`. Returns its ledger so far, which ends here.
    package func takeAPNsDown() -> [LedgerEntry] {
        defer { apns.end() }
        return apns.takeRequests()
    }

    /// Listens again, with the first scenario and an empty ledger.
    package func bringAPNsUp() { apns.listen() }
}
