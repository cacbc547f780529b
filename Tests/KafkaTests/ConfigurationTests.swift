// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Kafka

@Suite("Kafka configuration")
struct ConfigurationTests {
    private func problems(_ options: [String: String], _ role: KafkaRole = .consumer) -> [String] {
        KafkaConfiguration(brokers: "b:1", group: "g", options: options).problems(for: role).map(\.description)
    }

    @Test func theDefaultsAreAccepted() {
        #expect(problems([:]) == [])
        #expect(problems([:], .producer) == [])
    }

    @Test func anUnknownOptionIsNamed() {
        #expect(
            problems(["sesion.timeout.ms": "6000"])
                == ["sesion.timeout.ms: librdkafka \(KafkaConfiguration.libraryVersion) has no such property"])
    }

    @Test func allProblemsComeTogether() {
        let found = problems([
            "acks": "1", "fetch.max.bytes": "lots", "group.id": "x", "no.such": "1",
        ])
        #expect(found.count == 4)
        #expect(found.map { String($0.prefix { $0 != ":" }) } == ["acks", "fetch.max.bytes", "group.id", "no.such"])
    }

    @Test(arguments: [
        ("auto.offset.reset", "latest"), ("auto.offset.reset", "largest"), ("enable.auto.commit", "false"),
        ("auto.commit.interval.ms", "5000"),
        ("enable.auto.offset.store", "true"), ("bootstrap.servers", "x:1"), ("acks", "0"),
        ("client.rack", "a\0b"), ("enable.partition.eof", "false"),
    ])
    func optionsThatBreakTheGuaranteeAreRefused(key: String, value: String) {
        #expect(problems([key: value]).count == 1)
        #expect(problems([key: value]).first?.hasPrefix("\(key): ") == true)
    }

    /// What older libraries lose assignments with, or do not know, newer ones are trusted with.
    @Test(arguments: [("partition.assignment.strategy", "cooperative-sticky"), ("group.protocol", "consumer")])
    func optionsOfANewerLibraryAreRefused(key: String, value: String) {
        let found = problems([key: value])
        #expect(found.count == (KafkaConfiguration.allowsCooperative ? 0 : 1))
        #expect(found.allSatisfy { $0.hasPrefix("\(key): ") && $0.contains("2.10.1") })
    }

    @Test(arguments: [
        ("auto.offset.reset", "error"), ("enable.auto.commit", "true"), ("acks", "all"),
        ("partition.assignment.strategy", "roundrobin"), ("security.protocol", "sasl_ssl"),
        ("sasl.password", "s3cret"), ("group.instance.id", "pod-0"),
    ])
    func librdkafkasOwnOptionsPass(key: String, value: String) {
        #expect(problems([key: value]) == [])
    }

    @Test func aPropertyOfAnotherBuildIsNamedAlsoWhereItsValueIsSecret() {
        let found = problems(["sasl.oauthbearer.client.secret": "canary-4711"])
        if KafkaLibrary.loaded.features.contains("oidc") { return #expect(found == []) }
        #expect(found.count == 1 && !found.joined().contains("canary"))
        #expect(found.first?.contains("not supported in this build: OAuth/OIDC depends on libcurl") == true, "\(found)")
    }

    @Test func theLoadedLibraryNamesItsFeatures() {
        #expect(KafkaLibrary.loaded.features.isSuperset(of: ["ssl", "sasl_plain", "sasl_scram", "sasl_oauthbearer"]))
        #expect(KafkaLibrary.loaded.version == KafkaConfiguration.libraryVersion)
    }

    @Test(arguments: [
        (["security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512"], "sasl.password must be set"),
        (["security.protocol": "sasl_ssl", "sasl.mechanism": "AWS_MSK_IAM"], "Unsupported SASL mechanism"),
        (["security.protocol": "ssl", "ssl.ca.location": "/no/such/file"], "ssl.ca.location failed"),
        (["security.protocol": "ssl"], nil), ([:], nil),
    ])
    func aSignInIsLookedAtWithoutABroker(options: [String: String], words: String?) {
        let why = KafkaConfiguration(brokers: "b:1", options: options).signInRefusal()
        #expect(words.map { why?.contains($0) == true } ?? (why == nil), "\(why ?? "")")
    }

    @Test func aSecretsValueNeverShows() {
        let found = problems(["ssl.key.pem": "canary-4711", "ssl.key.password": "canary-4711"])
        #expect(!found.joined().contains("canary"))
    }

    @Test func brokersAndGroupAreNeeded() {
        let empty = KafkaConfiguration(brokers: "")
        #expect(empty.problems(for: .consumer).map(\.key) == ["brokers", "group"])
        #expect(empty.problems(for: .producer).map(\.key) == ["brokers"])
    }

    @Test func settingsThatDoNotGoTogetherAreAFaultWithText() {
        let options = ["session.timeout.ms": "60000", "max.poll.interval.ms": "10000"]
        #expect {
            _ = try KafkaConsumer(KafkaConfiguration(brokers: "b:1", group: "g", options: options), topics: ["t"])
        } throws: { error in
            "\(error)".contains("max.poll.interval.ms")
        }
    }

    @Test(arguments: [[], [""], ["^im.*"], ["a", "a"], ["a\0"]])
    func topicsThatCannotBeSubscribedAreRefused(topics: [String]) {
        #expect(throws: KafkaFault.self) {
            _ = try KafkaConsumer(KafkaConfiguration(brokers: "b:1", group: "g"), topics: topics)
        }
    }

    @Test(arguments: [KafkaRole.consumer, .producer]) func aTransactionalIdIsRefusedWithItsCure(role: KafkaRole) {
        let configuration = KafkaConfiguration(brokers: "b:1", group: "g", options: ["transactional.id": "w"])
        let problems = configuration.problems(for: role)
        #expect(problems.map(\.key) == ["transactional.id"])
        #expect(problems.first?.why.contains("leave it out") == true)
    }

    @Test func anOldKeystoreIsHintedAtTheLegacyProvider() {
        let words =
            "Failed to parse ssl.keystore.location PKCS#12 file: ks.p12: error:0308010C:digital envelope "
            + "routines::unsupported: Global default library context, Algorithm (RC2-40-CBC : 0), Properties ()"
        #expect(KafkaFault.withCure(words).contains("ssl.providers"))
        #expect(KafkaFault.withCure("no such file") == "no such file")
    }
}
