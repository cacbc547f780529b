// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

@testable import WorkerConfiguration

/// Each row has the options of a sign-in, the features of the library, and the expected problems.
struct KafkaSignInTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var options: [String: String]
        var library = debian
        var told: [String] = []
        var warned: [String] = []

        var testDescription: String {
            options.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        }
    }

    /// Debian 12's.
    static let debian = KafkaLibrary(
        version: "2.0.2", features: ["ssl", "sasl_gssapi", "sasl_plain", "sasl_scram", "sasl_oauthbearer"])
    /// The wheel's.
    static let newer = KafkaLibrary(
        version: "2.16.0", features: ["ssl", "sasl_plain", "sasl_scram", "sasl_oauthbearer", "http", "oidc"])
    static let bare = KafkaLibrary(version: "2.0.2", features: [])

    private static func sasl(_ mechanism: String, _ more: [String: String] = [:]) -> [String: String] {
        ["security.protocol": "SASL_SSL", "sasl.mechanism": mechanism].merging(more) { _, new in new }
    }

    private static let login = ["sasl.username": "u", "sasl.password": "p"]
    private static let oidc = [
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "c", "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token",
    ]
    private static let withoutOIDC =
        "sasl.oauthbearer.method: librdkafka 2.0.2 is built without OIDC: run a carillon that loads a librdkafka with oidc "
        + "in its builtin.features, or sign in by SCRAM-SHA-512 or a client certificate"

    static let mechanisms: [Row] = [
        Row(options: [:]),
        Row(options: ["security.protocol": "ssl"]),
        Row(options: sasl("SCRAM-SHA-512", login)),
        Row(options: sasl("PLAIN", login)),
        Row(options: ["security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-256"].merging(login) { $1 }),
        Row(options: sasl("GSSAPI")),
        Row(options: ["security.protocol": "SASL_SSL", "sasl.kerberos.service.name": "kafka"]),
        Row(
            options: ["security.protocol": "SASL_TLS"],
            told: ["security.protocol: must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"]),
        Row(
            options: ["security.protocol": "SASL_SSL"],
            told: [
                "security.protocol: needs sasl.mechanism: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"
            ]),
        Row(
            options: sasl("SCRAM-SHA-512"),
            told: [
                "sasl.mechanism: SCRAM-SHA-512 needs sasl.username in kafka.options and sasl.password in kafka.secret_files"
            ]),
        Row(
            options: sasl("PLAIN", ["sasl.username": "u"]),
            told: ["sasl.mechanism: PLAIN needs sasl.password in kafka.secret_files"]),
        Row(options: sasl("scram-sha-512", login), told: ["sasl.mechanism: is written SCRAM-SHA-512"]),
        Row(
            options: sasl("SCRAM", login),
            told: [
                "sasl.mechanism: librdkafka does not know it; it has PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"
            ]),
        Row(
            options: sasl("AWS_MSK_IAM"),
            told: [
                "sasl.mechanism: librdkafka cannot sign in by AWS_MSK_IAM: switch on SASL/SCRAM (SASL_SSL with "
                    + "SCRAM-SHA-512) or client certificates (SSL) at the MSK cluster, and use that"
            ]),
        Row(
            options: sasl("GSSAPI"), library: newer,
            told: [
                "sasl.mechanism: librdkafka 2.16.0 is built without GSSAPI; it has PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
                    + "OAUTHBEARER"
            ]),
        Row(
            options: sasl("PLAIN", login), library: bare,
            told: ["sasl.mechanism: librdkafka 2.0.2 is built without PLAIN; it has no other"]),
        Row(
            options: ["sasl.mechanism": "PLAIN"],
            warned: ["sasl.mechanism: has no effect without security.protocol: SASL_SSL"]),
    ]

    static let tokens: [Row] = [
        Row(options: sasl("OAUTHBEARER", oidc), library: newer),
        Row(options: sasl("OAUTHBEARER", oidc), told: [withoutOIDC]),
        Row(
            options: sasl("OAUTHBEARER", ["sasl.oauthbearer.scope": "kafka"]),
            told: [withoutOIDC.replacing("oauthbearer.method", with: "oauthbearer.scope", maxReplacements: 1)]),
        Row(
            options: sasl("OAUTHBEARER"), library: newer,
            told: ["sasl.mechanism: OAUTHBEARER needs sasl.oauthbearer.method: oidc"]),
        Row(options: sasl("OAUTHBEARER"), told: ["sasl.mechanism: OAUTHBEARER needs sasl.oauthbearer.method: oidc"]),
        Row(
            options: sasl(
                "OAUTHBEARER",
                ["enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=u"])),
        Row(
            options: sasl("OAUTHBEARER", ["sasl.oauthbearer.method": "oidc"]), library: newer,
            told: [
                "sasl.oauthbearer.method: oidc needs sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id, "
                    + "sasl.oauthbearer.client.secret (in kafka.secret_files)"
            ]),
        Row(
            options: sasl(
                "OAUTHBEARER",
                [
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
                ]), library: newer),
    ]

    static let certificates: [Row] = [
        Row(
            options: ["security.protocol": "ssl", "ssl.certificate.location": "/dev/null"],
            told: ["ssl.certificate.location: needs the key of the certificate: ssl.key.location"]),
        Row(
            options: ["security.protocol": "ssl", "ssl.key.location": "/dev/null"],
            told: ["ssl.key.location: needs the certificate of the key: ssl.certificate.location"]),
        Row(
            options: [
                "security.protocol": "ssl", "ssl.ca.location": "/no/ca.pem", "ssl.keystore.location": "/no/k.p12",
            ],
            told: [
                "ssl.ca.location: /no/ca.pem: No such file or directory",
                "ssl.keystore.location: /no/k.p12: No such file or directory",
            ]),
        Row(options: ["security.protocol": "ssl", "ssl.ca.location": "probe"]),
        Row(options: ["security.protocol": "ssl", "ssl.ca.location": "/"]),
        Row(
            options: ["ssl.certificate.location": "/dev/null", "ssl.key.location": "/dev/null"],
            warned: ["ssl.certificate.location: has no effect without security.protocol: SSL or SASL_SSL"]),
    ]

    @Test(arguments: mechanisms + tokens + certificates) func isToldWithItsCure(row: Row) {
        let signIn = KafkaSignIn(options: row.options, library: row.library)
        #expect(signIn.problems.map(\.description) == row.told)
        #expect(signIn.warnings.map(\.description) == row.warned)
    }

    /// All of librdkafka's own remarks about OIDC have the one cause.
    @Test func aLibraryWithoutOIDCIsToldOnceWithItsLine() throws {
        let folder = try TemporaryFolder()
        let secret = try folder.write(Array("s3cret\n".utf8), to: "secret")
        let yaml = """
            kafka:
              brokers: "localhost:9092"
              options:
                security.protocol: SASL_SSL
                sasl.mechanism: OAUTHBEARER
                sasl.oauthbearer.method: oidc
                sasl.oauthbearer.client.id: carillon
                sasl.oauthbearer.token.endpoint.url: https://issuer.example/token
                sasl.oauthbearer.scope: kafka
              secret_files: {sasl.oauthbearer.client.secret: \(secret)}
            redis: {url: "redis://localhost:6379"}
            apps: [{id: im, topic: com.example.im, credentials: \(ConfigurationProblemTests.credentials)}]
            """
        let read = Configuration.read(Array(yaml.utf8), source: "f")
        guard !KafkaLibrary.loaded.features.contains("oidc") else {
            _ = try read.get()
            return
        }
        let found = try #require(throws: ConfigurationProblems.self) { try read.get() }
        #expect(found.problems.map(\.line) == [6], "\(found)")
        #expect(found.description.contains("is built without OIDC"))
    }

    @Test func whatHasNoEffectIsAWarningWithItsLine() throws {
        let yaml = ConfigurationProblemTests.good.replacing(
            #"brokers: "localhost:9092""#, with: #"brokers: "localhost:9092", options: {sasl.mechanism: PLAIN}"#)
        let read = try Configuration.read(Array(yaml.utf8), source: "f").get()
        #expect(
            read.warnings.map(\.description)
                == ["f:1: kafka.options.sasl.mechanism: has no effect without security.protocol: SASL_SSL"])
    }
}
