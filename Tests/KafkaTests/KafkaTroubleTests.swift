// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Testing

@testable import Kafka

/// librdkafka's errors as it words them, and what becomes of them.
@Suite struct KafkaTroubleTests {
    private static let refused = KafkaLogLine(
        level: 3, facility: "SSLCERTVRFY",
        text: "[thrd:ssl://[::1]:9093/bootstrap]: ssl://[::1]:9093/bootstrap: "
            + "Certificate (subject=/CN=b, issuer=/CN=a) verification callback failed: IP address mismatch")

    @Test func placeAndWordsAreDistinguished() {
        let error = KafkaError(
            RD_KAFKA_RESP_ERR__TRANSPORT,
            text: "sasl_ssl://b1.example:9093/2: Connect to ipv4#10.0.0.1:9093 failed: Connection refused "
                + "(after 2ms in state CONNECT, 3 identical error(s) suppressed)")
        let trouble = KafkaTrouble(error)
        #expect(trouble.place == "b1.example:9093" && trouble.kind == .connection)
        #expect(trouble.words == "Connect to ipv4#10.0.0.1:9093 failed: Connection refused")
    }

    @Test(arguments: [
        "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate required: SSL alert number 116",
        "SSL handshake failed: error:0A000418:SSL routines::tlsv1 alert unknown ca: SSL alert number 48",
    ])
    func aBrokerThatWantsACertificateIsDistinguished(words: String) {
        for code in [RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR__TRANSPORT] {
            #expect(KafkaTrouble(KafkaError(code, text: "ssl://b:9093/1: \(words)")).kind == .ownCertificate)
        }
    }

    @Test func anErrorOfNoBrokerHasNoPlace() {
        let text = "Failed to acquire idempotence PID from broker: Cluster authorization failed"
        let trouble = KafkaTrouble(KafkaError(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, text: text))
        #expect(trouble.place.isEmpty && trouble.words == text && trouble.kind == .rights)
    }

    /// The same refusal comes as an error of TLS or of the connection, whichever is first.
    @Test(arguments: [RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR__TRANSPORT])
    func aRefusedCertificateIsReportedInTheLogsWords(_ code: rd_kafka_resp_err_t) {
        var list = TroubleList()
        let text = "ssl://[::1]:9093/bootstrap: error:0A000086:SSL routines::certificate verify failed (after 1ms)"
        list.add(KafkaError(code, text: text), lines: [Self.refused])
        list.add(KafkaError(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, text: "1/1 brokers are down"), lines: [])
        #expect(list.all.map(\.place) == ["[::1]:9093"] && list.all.map(\.kind) == [.certificateName])
        #expect(
            list.all.first?.words == "Certificate (subject=/CN=b, issuer=/CN=a) is refused: IP address mismatch")
    }
}
