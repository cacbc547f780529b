// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Worker

/// Each row is a configuration, the waivers that it needs, and the line of the link.
struct WeakLinkTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var brokers = "localhost:9092"
        var redis = "redis://localhost:6379"
        var options = "{}"
        var needed: [WeakLink.Waiver]
        var line = 1

        var testDescription: String { "\(brokers) \(redis) \(options)" }

        func text(waivers: [WeakLink.Waiver] = []) -> [UInt8] {
            Array(
                """
                kafka: {brokers: "\(brokers)", options: \(options)}
                redis: {url: "\(redis)"}
                waivers: [\(waivers.map(\.rawValue).joined(separator: ", "))]
                apps:
                  - id: im
                    topic: com.example.im
                    credentials: \(ConfigurationProblemTests.credentials)
                """.utf8)
        }
    }

    /// A login that needs nothing else.
    private static let kerberos = "sasl.mechanism: GSSAPI"

    static let rows: [Row] = [
        Row(needed: []),
        Row(redis: "redis://127.0.0.1", needed: []),
        Row(redis: "redis://127.8.9.10:1", needed: []),
        Row(redis: "redis://[::1]:1", needed: []),
        Row(redis: "unix:///run/redis.sock", needed: []),
        Row(redis: "rediss://redis.example", needed: []),
        Row(redis: "redis://redis.example", needed: [.plainRedis], line: 2),
        Row(redis: "redis://10.0.0.1:6379", needed: [.plainRedis], line: 2),
        Row(redis: "redis://localhost.example", needed: [.plainRedis], line: 2),
        Row(redis: "redis://127.0.0.1.example", needed: [.plainRedis], line: 2),
        Row(options: "{security.protocol: SASL_PLAINTEXT, \(kerberos)}", needed: []),
        Row(brokers: "kafka.example:9092", needed: []),
        Row(
            brokers: "localhost:9092, kafka.example:9092", options: "{security.protocol: Sasl_Plaintext, \(kerberos)}",
            needed: [.plainSASL]),
        Row(options: "{security.protocol: ssl}", needed: []),
        Row(
            options: "{security.protocol: ssl, enable.ssl.certificate.verification: FALSE}", needed: [.unverifiedKafka]),
        Row(
            options: "{security.protocol: sasl_ssl, \(kerberos), enable.ssl.certificate.verification: 0}",
            needed: [.unverifiedKafka]),
        Row(
            options: "{security.protocol: sasl_ssl, \(kerberos), ssl.endpoint.identification.algorithm: none}",
            needed: [.unnamedKafka]),
        Row(options: "{enable.sasl.oauthbearer.unsecure.jwt: true}", needed: [.unsignedJWT]),
    ]

    @Test(arguments: rows) func aWeakLinkNeedsItsWaiver(row: Row) throws {
        if !row.needed.isEmpty {
            let fault = #expect(throws: ConfigurationProblems.self) {
                try Configuration.read(row.text(), source: "f").get()
            }
            let told = try #require(fault?.problems.first)
            #expect(fault?.problems.count == row.needed.count)
            #expect(told.line == row.line && told.text.contains("waivers: [\(row.needed[0].rawValue)]"), "\(told)")
        }
        let configuration = try Configuration.read(row.text(waivers: row.needed), source: "f").get()
        #expect(configuration.weakLinks.map(\.waiver) == row.needed)
        #expect(configuration.idleWaivers.isEmpty)
    }

    /// librdkafka loads a plugin as soon as it is named, so the file itself never comes that far.
    @Test func foreignCodeIsRefusedWithoutItsWaiver() {
        let row = Row(options: "{plugin.library.paths: /nowhere/plugin.so}", needed: [.kafkaPlugins])
        let fault = #expect(throws: ConfigurationProblems.self) {
            try Configuration.read(row.text(), source: "f").get()
        }
        #expect(fault?.description.contains("waivers: [kafka_plugins]") == true)
    }

    @Test func aWaiverThatNothingNeedsIsIdle() throws {
        let configuration = try Configuration.read(Row(needed: []).text(waivers: [.plainRedis]), source: "f").get()
        #expect(configuration.idleWaivers == [.plainRedis] && configuration.weakLinks.isEmpty)
    }
}
