// SPDX-License-Identifier: Apache-2.0
internal import COpenSSL
import CRdkafka
import Glibc

/// OpenSSL's reason for refusing a broker's certificate. librdkafka's error reports only the refusal.
enum CertificateRefusal {
    /// The facility of the log line with the reason.
    static let facility = "SSLCERTVRFY"

    /// Makes a client log the reason. A certificate that OpenSSL refuses remains refused.
    static func tellWords(_ conf: OpaquePointer) {
        // A librdkafka without TLS has no certificates.
        _ = rd_kafka_conf_set_ssl_cert_verify_cb(conf) {
            _, _, _, verdict, _, _, _, text, capacity, _ in
            guard let code = verdict?.pointee, code != X509_V_OK else { return 1 }
            if let text, let words = X509_verify_cert_error_string(Int(code)) {
                strncpy(text, words, max(0, capacity - 1))
            }
            return 0
        }
    }

    static func isAboutName(_ words: String) -> Bool {
        [X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH].contains { code in
            X509_verify_cert_error_string(Int(code)).map { words.hasSuffix(String(cString: $0)) } ?? false
        }
    }
}
