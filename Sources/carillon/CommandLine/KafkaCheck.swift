// SPDX-License-Identifier: Apache-2.0
import Console
import Kafka
import PushCore
import Worker

/// The questions of `check` to Kafka: each address of `kafka.brokers`, the topics with their leaders, and this user's
/// read rights.
///
/// It writes nothing, joins no group and commits nothing. So only the worker notices a missing write right.
struct KafkaCheck {
    let configuration: Configuration

    private var section: Configuration.KafkaSection { configuration.kafka }
    private var client: KafkaConfiguration { section.client(id: "carillon-check") }

    func findings() -> [Finding] {
        var findings: [Finding] = []
        var metadata: ClusterMetadata?
        var looks: [(address: String, look: BrokerLook)] = []
        for address in addresses {
            do throws(KafkaFault) {
                let look = try BrokerLook.ask(at: address, client)
                looks.append((address, look))
                metadata = metadata ?? look.metadata
            } catch {
                // The error does not depend on the address: the settings as a whole are wrong.
                return [Finding(.fail, "kafka", section.brokers, "\(error); see kafka.options")] + rights
            }
        }
        for (address, look) in looks { findings += reach(address, look, isAloneAway: metadata != nil) }
        let answered = looks.filter { $0.look.metadata != nil }.map(\.address)
        if let metadata { findings += content(metadata, answered: answered) }
        return findings + rights
    }

    private var addresses: [String] {
        section.brokers.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }

    // MARK: - Addresses

    /// - Parameter isAloneAway: another address answered, so a worker can start without this one.
    private func reach(_ address: String, _ look: BrokerLook, isAloneAway: Bool) -> [Finding] {
        var findings: [Finding] = []
        if let metadata = look.metadata {
            let count = metadata.brokers.count
            findings.append(Finding(.ok, "kafka", address, "\(counted(count, "broker"))"))
            // Earlier problems were temporary, except for a missing right.
            return findings + look.troubles.filter { $0.kind == .rights }.map { Self.finding(.fail, $0, address) }
        }
        let grade: Finding.Grade = isAloneAway ? .warn : .fail
        if look.troubles.isEmpty {
            return [Finding(grade, "kafka", address, "no answer in time; is it a broker, and is the way to it open?")]
        }
        return look.troubles.map { Self.finding(grade, $0, address) }
    }

    private static func finding(_ grade: Finding.Grade, _ trouble: KafkaTrouble, _ address: String) -> Finding {
        Finding(
            grade, "kafka", trouble.place.isEmpty ? address : trouble.place,
            "\(trouble.words) (\(trouble.error.name)): \(cure(trouble.kind))")
    }

    private static func cure(_ kind: KafkaTrouble.Kind) -> String {
        switch kind {
        case .name:
            "does this machine's DNS know the name? It is from kafka.brokers, or from a broker's advertised.listeners "
                + "(advertised.listeners)"
        case .connection:
            "does a broker listen there, with this security.protocol, and is the way to it open? See kafka.brokers and "
                + "the broker's advertised.listeners"
        case .certificate:
            "name the file of the authority that signed it as ssl.ca.location in kafka.options, or renew it"
        case .certificateName:
            "write the certificate's name in kafka.brokers, and if the broker advertises another, correct "
                + "advertised.listeners"
        case .ownCertificate:
            "the broker wants a certificate of this client that it trusts: ssl.certificate.location with ssl.key.location "
                + "in kafka.options"
        case .encryption: "see security.protocol and ssl.* in kafka.options"
        case .login:
            "see sasl.mechanism and sasl.username in kafka.options, and the password's file in kafka.secret_files"
        case .rights: "run the missing commands of the lines below"
        case .other: "see kafka.options"
        }
    }

    // MARK: - Topics and rights

    /// - Parameter answered: the addresses that reached the cluster.
    private func content(_ metadata: ClusterMetadata, answered: [String]) -> [Finding] {
        // Only `state_results` writes to it.
        let wanted = section.topics.all.filter { $0.key != "state_results" || configuration.stateResults }
        let read = Set(KafkaRights.read(section.topics))
        let topics = metadata.topics.filter { read.contains($0.name) && $0.error == nil && $0.leaderless.isEmpty }
        let unlisted = wanted.map(\.name).filter { metadata.topic($0) == nil }
        let access: AccessLook
        do throws(KafkaFault) {
            var client = client
            client.brokers = answered.joined(separator: ",")
            access = try AccessLook.ask(client, topics: topics, unlisted: unlisted)
        } catch {
            return [Finding(.fail, "kafka", section.brokers, "\(error); see kafka.options")]
        }
        var findings = access.troubles.map { Self.finding(.fail, $0, section.brokers) }
        for (key, name) in wanted { findings.append(topic(name, key, metadata, access)) }
        findings += policies(
            of: wanted.map(\.name).filter { metadata.topic($0)?.error == nil && metadata.topic($0) != nil })
        if let error = access.group {
            let cure = error.isDenied ? "grant Read on the group" : "is its coordinator up? See the brokers"
            findings.append(Finding(.fail, "group", section.group, "\(error): \(cure)"))
        } else if !topics.isEmpty {
            findings.append(Finding(.ok, "group", section.group, "its offsets can be read"))
        }
        return findings
    }

    private func topic(_ name: String, _ key: String, _ metadata: ClusterMetadata, _ access: AccessLook) -> Finding {
        let isRead = KafkaRights.read(section.topics).contains(name)
        func denied(_ error: KafkaError, _ operation: String) -> Finding {
            Finding(.fail, "topic", name, "\(error): grant \(operation) on it, see the lines below")
        }
        guard let topic = metadata.topic(name) else {
            if let error = access.unlisted[name], error.isDenied { return denied(error, isRead ? "Read" : "Write") }
            return Finding(.fail, "topic", name, "missing: create it, or name another as kafka.topics.\(key)")
        }
        if let error = topic.error {
            return error.isDenied
                ? denied(error, isRead ? "Read" : "Write") : Finding(.fail, "topic", name, "\(error); see the brokers")
        }
        let count = topic.partitions.count
        if !topic.leaderless.isEmpty {
            let list = topic.leaderless.map(String.init).joined(separator: ", ")
            return Finding(.fail, "topic", name, "partitions without a leader: \(list); see the brokers")
        }
        if let error = access.refused[name] { return denied(error, "Read") }
        if access.unanswered.contains(name) {
            return Finding(.fail, "topic", name, "not all of its leaders answer: see the brokers")
        }
        return Finding(
            .ok, "topic", name, "\(counted(count, "partition"))\(isRead ? ", can be read" : "")")
    }

    /// Compaction keeps the newest record of each key: the worker would never read the others.
    private func policies(of topics: [String]) -> [Finding] {
        guard let found = try? TopicPolicies.ask(client, topics: topics) else { return [] }
        var findings = topics.compactMap { Self.compaction(of: $0, found.policies[$0], isRead: isRead($0)) }
        let parked = section.topics.parked
        if let finding = Self.retention(of: parked, ms: found.retentionsMs[parked]) { findings.append(finding) }
        let denied = topics.filter { found.refused[$0]?.isDenied ?? false }
        if denied.isEmpty { return findings }
        return findings + [
            Finding(
                .warn, "topic", denied.joined(separator: ", "),
                "cleanup.policy is not checked: grant DescribeConfigs, or look yourself that it is delete")
        ]
    }

    /// A scheduled message waits in the topic, for a week at most.
    ///
    /// - Returns: nil where every such message outlives its wait.
    static func retention(of topic: String, ms: Int64?) -> Finding? {
        guard let ms, ms >= 0, ms < InputLimit.scheduleMs + InputLimit.dayMs else { return nil }
        return Finding(
            .warn, "topic", topic,
            "retention.ms is \(ms): a message with a later push.send_at_ms may be lost; set it to "
                + "\(InputLimit.scheduleMs + InputLimit.dayMs) (8 days)")
    }

    private func isRead(_ topic: String) -> Bool { KafkaRights.read(section.topics).contains(topic) }

    /// - Returns: nil where the topic keeps every record for its time.
    static func compaction(of topic: String, _ policy: String?, isRead: Bool) -> Finding? {
        guard let policy, policy.contains("compact") else { return nil }
        return Finding(
            isRead ? .fail : .warn, "topic", topic,
            "cleanup.policy is \(policy): compaction deletes all but the newest record of a key; set it to delete")
    }

    /// The rights that this user needs, ready to be granted, like Redis' line.
    private var rights: [Finding] {
        KafkaRights.lines(configuration).map { Finding(.ok, "kafka", "rights", $0) }
            + [Finding(.ok, "kafka", "rights", "before Kafka 2.8 also: \(KafkaRights.lineBefore28(configuration))")]
    }
}
