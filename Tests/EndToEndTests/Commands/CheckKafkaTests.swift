// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSON
import Kafka
import LocalServers
import Processes
import Support
import Testing

/// What `check` says of Kafka: where it is wrong, in librdkafka's words, and what would be right.
struct CheckKafkaTests {
    /// A check whose Kafka alone matters.
    private static func check(brokers: String, _ options: [String: String] = [:]) async throws -> [JSONTree] {
        let folder = try TemporaryFolder()
        let lines = options.sorted { $0.key < $1.key }.map { "    \($0.key): \($0.value)\n" }.joined()
        let password = try folder.write(Array("wrong\n".utf8), to: "password")
        let secret = options["sasl.username"] == nil ? "" : "  secret_files: {sasl.password: \(password)}\n"
        let text = """
            kafka:
              brokers: "\(brokers)"
            \(lines.isEmpty ? "" : "  options:\n" + lines)\(secret)redis: {url: "redis://127.0.0.1:1"}
            apps: [{id: im, topic: t, credentials: {key_file: no, key_id: ABC123DEFG, team_id: DEF123GHIJ}}]

            """
        let path = try folder.write(Array(text.utf8), to: "c.yaml")
        return try await told(path)
    }

    private static func told(_ path: String) async throws -> [JSONTree] {
        let run = try await offPool { try CommandRun("check", "--json", "--config", path) }
        return try run.lines.map { try JSONTree(parsing: Array($0.utf8)) }
    }

    private static func fails(_ findings: [JSONTree], of part: String = "kafka") -> [(place: String, text: String)] {
        findings.filter { $0["grade"]?.string == "fail" && $0["check"]?.string == part }
            .map { ($0["place"]?.string ?? "", $0["text"]?.string ?? "") }
    }

    @Test func aNameWithoutAnAddressIsReported() async throws {
        let fails = Self.fails(try await Self.check(brokers: "no-such-broker.invalid:9092"))
        #expect(fails.map(\.place) == ["no-such-broker.invalid:9092"])
        let text = fails.first?.text ?? ""
        #expect(text.contains("Failed to resolve 'no-such-broker.invalid:9092'") && text.contains("(_RESOLVE)"))
        #expect(text.contains("DNS") && text.contains("kafka.brokers"), "the cure")
    }

    @Test func aClosedPortIsReportedWithItsNumber() async throws {
        let port = try Ports.free()
        let fails = Self.fails(try await Self.check(brokers: "127.0.0.1:\(port)"))
        #expect(fails.map(\.place) == ["127.0.0.1:\(port)"])
        let text = fails.first?.text ?? ""
        #expect(text.contains("Connection refused") && text.contains("does a broker listen there"), "\(text)")
    }

    /// One of several addresses is no reason that a worker does not start.
    @Test func eachAddressIsLookedAtByItself() async throws {
        let broker = try MockBroker()
        let port = try Ports.free()
        let findings = try await Self.check(brokers: "127.0.0.1:\(port),\(broker.bootstrap)")
        let kafka = findings.filter { $0["check"]?.string == "kafka" && $0["place"]?.string != "rights" }
        #expect(kafka.map { $0["grade"]?.string } == ["warn", "ok"], "\(kafka)")
        #expect(kafka.map { $0["place"]?.string } == ["127.0.0.1:\(port)", broker.bootstrap])
        withExtendedLifetime(broker) {}
    }

    /// A TLS listener whose certificate, for `name`, signs itself; `body` gets its port and the certificate's file.
    private func withTLS(for name: String, _ body: (UInt16, String) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let (certificate, key) = (folder.file("c.pem"), folder.file("k.pem"))
        let made = try FinishedProcess.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)", "-days", "2", "-keyout", key, "-out",
                certificate,
            ])
        #expect(made.exitCode == 0)
        let port = try Ports.free()
        let server = try ServerProcess(
            "openssl", ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-www"],
            readyLine: "ACCEPT")
        defer { server.stop() }
        try await body(port, certificate)
    }

    @Test func aSelfSignedCertificateIsReportedWithItsCure() async throws {
        try await withTLS(for: "localhost") { port, _ in
            let findings = try await Self.check(brokers: "localhost:\(port)", ["security.protocol": "ssl"])
            let fails = Self.fails(findings)
            #expect(fails.map(\.place) == ["localhost:\(port)"])
            let text = fails.first?.text ?? ""
            #expect(text.contains("subject=/CN=localhost") && text.contains("self-signed certificate"), "\(text)")
            #expect(text.contains("ssl.ca.location"), "\(text)")
        }
    }

    @Test func aCertificateForAnotherNameIsReportedWithItsCure() async throws {
        try await withTLS(for: "kafka.example") { port, certificate in
            let options = ["security.protocol": "ssl", "ssl.ca.location": certificate]
            let fails = Self.fails(try await Self.check(brokers: "localhost:\(port)", options))
            #expect(fails.map(\.place) == ["localhost:\(port)"])
            let text = fails.first?.text ?? ""
            #expect(text.contains("subject=/CN=kafka.example") && text.contains("hostname mismatch"), "\(text)")
            #expect(text.contains("write the certificate's name in kafka.brokers"), "\(text)")
        }
    }

    @Test(arguments: [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", "broker's supported mechanisms: SCRAM-SHA-512"),
    ])
    func aRefusedLoginIsReportedInTheBrokersWords(_ mechanism: String, _ words: String) async throws {
        let stage = try TestLoop("sasl")
        let port = try await stage.run { stage in
            let listener = try SASLListener(loop: stage.loop, mechanism: mechanism)
            stage.keep(listener)
            return listener.port
        }
        let findings = try await Self.check(
            brokers: "127.0.0.1:\(port)",
            ["security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "bell-ringer"])
        let fails = Self.fails(findings)
        #expect(fails.map(\.place) == ["127.0.0.1:\(port)"])
        let text = fails.first?.text ?? ""
        #expect(text.contains(words) && text.contains("(_AUTHENTICATION)") && text.contains("sasl.username"), "\(text)")
        #expect(!findings.contains { ($0["text"]?.string ?? "").contains("wrong") }, "no password")
        #expect(findings.contains { $0["text"]?.string?.contains("User:bell-ringer") ?? false }, "whom rights are for")
        await stage.end()
    }

    // MARK: - Rights

    private static let topicDenied: Int32 = 29
    private static let groupDenied: Int32 = 30
    private static let clusterDenied: Int32 = 31

    @Test func theRightsThatTheWorkerNeedsArePrinted() async throws {
        let world = try await LocalCluster()
        let findings = try await Self.told(try world.writeConfiguration())
        let lines = findings.filter { $0["check"]?.string == "kafka" && $0["place"]?.string == "rights" }
            .compactMap { $0["text"]?.string }
        let start = "kafka-acls --bootstrap-server \(world.broker.bootstrap) --add --allow-principal User:carillon"
        #expect(
            lines == [
                "\(start) --operation Read --operation Describe --topic im.events --topic im.user-state "
                    + "--topic carillon.chunks --topic carillon.parked",
                "\(start) --operation Write --operation Describe --topic carillon.chunks --topic carillon.parked "
                    + "--topic im.deliveries --topic push.results --topic push.feedback --topic push.sms "
                    + "--topic push.dead-letter",
                "\(start) --operation Read --group carillon",
                "before Kafka 2.8 also: \(start) --operation IdempotentWrite --cluster",
            ])
        await world.close()
    }

    @Test func aMissingRightIsReportedWithItsTopicOrGroup() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let refusals = [Int32](repeating: Self.topicDenied, count: 200)
        world.broker.pushErrors(api: .fetch, refusals)
        let read = try await Self.told(path)
        let reading = Self.fails(read, of: "topic")
        #expect(!reading.isEmpty, "\(read.map { $0["text"]?.string ?? "" })")
        #expect(reading.allSatisfy { $0.text.contains("TOPIC_AUTHORIZATION_FAILED") && $0.text.contains("grant Read") })
        world.broker.clearErrors(api: .fetch)

        world.broker.setError(topic: "push.results", Self.topicDenied)
        world.broker.setError(topic: "im.events", Self.topicDenied)
        let seeing = Self.fails(try await Self.told(path), of: "topic")
        #expect(seeing.map(\.place) == ["im.events", "push.results"])
        #expect(seeing.first?.text.contains("grant Read") ?? false)
        #expect(seeing.last?.text.contains("grant Write") ?? false)
        world.broker.setError(topic: "push.results", 0)
        world.broker.setError(topic: "im.events", 0)

        world.broker.pushErrors(api: .offsetFetch, [Int32](repeating: Self.groupDenied, count: 20))
        let group = Self.fails(try await Self.told(path), of: "group")
        #expect(group.map(\.place) == ["carillon"])
        #expect(group.first?.text.contains("GROUP_AUTHORIZATION_FAILED") ?? false, "\(group)")
        #expect(group.first?.text.contains("grant Read on the group") ?? false)
        world.broker.clearErrors(api: .offsetFetch)

        world.broker.pushErrors(api: .initProducerID, [Int32](repeating: Self.clusterDenied, count: 20))
        let writing = Self.fails(try await Self.told(path))
        #expect(writing.count == 1 && writing[0].text.contains("CLUSTER_AUTHORIZATION_FAILED"), "\(writing)")
        await world.close()
    }
}
