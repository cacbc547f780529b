internal import COpenSSL
import CRdkafka
import Glibc

/// Why a broker's certificate is refused, in OpenSSL's words: librdkafka's error tells only that it is.
enum CertificateRefusal {
    /// Of the log line that has the words.
    static let facility = "SSLCERTVRFY"

    /// Has a client log the words. What OpenSSL refuses stays refused.
    static func tellWords(_ conf: OpaquePointer) {
        // Where librdkafka knows no TLS there are no certificates.
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
