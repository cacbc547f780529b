// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// A client's problem on its way to a broker, in librdkafka's words.
public struct KafkaTrouble: Equatable, Sendable {
    /// Its kind, which decides the cure.
    public enum Kind: Sendable {
        /// The name has no address.
        case name
        /// The connection is refused, or ends before Kafka's protocol begins.
        case connection
        /// No trusted authority signed the certificate, or it has expired.
        case certificate
        /// The certificate is for another name.
        case certificateName
        /// The broker refuses this client's certificate, or misses one.
        case ownCertificate
        /// The peer does not use TLS, or not in this form.
        case encryption
        /// The login is refused.
        case login
        /// The login is accepted but lacks a right.
        case rights
        case other
    }

    public let kind: Kind
    /// `host:port` as the client knows it: from `kafka.brokers`, or from a broker's metadata. Empty for no broker.
    public let place: String
    public let error: KafkaError
    /// The text about the place.
    public let words: String

    /// From an error of librdkafka: `ssl://host:port/bootstrap: Connect to … failed: … (after 3ms in state CONNECT)`.
    init(_ error: KafkaError) {
        let (place, words) = Self.split(error.text)
        self.init(Self.kind(of: error), place, error, words)
    }

    /// From a log line about a refused certificate, with its reason; nil for any other line.
    init?(_ line: KafkaLogLine) {
        guard line.facility == CertificateRefusal.facility, let thread = line.text.firstRange(of: "]: ") else {
            return nil
        }
        let (place, text) = Self.split(String(line.text[thread.upperBound...]))
        let words = text.replacing(" verification callback failed: ", with: " is refused: ", maxReplacements: 1)
        self.init(
            CertificateRefusal.isAboutName(words) ? .certificateName : .certificate, place,
            KafkaError(RD_KAFKA_RESP_ERR__SSL, text: words), words)
    }

    private init(_ kind: Kind, _ place: String, _ error: KafkaError, _ words: String) {
        self.kind = kind
        self.place = place
        self.error = error
        self.words = words
    }

    private static func kind(of error: KafkaError) -> Kind {
        switch rd_kafka_resp_err_t(rawValue: error.code) {
        case RD_KAFKA_RESP_ERR__RESOLVE: .name
        case RD_KAFKA_RESP_ERR__TRANSPORT where isAboutOwnCertificate(error.text),
            RD_KAFKA_RESP_ERR__SSL where isAboutOwnCertificate(error.text):
            .ownCertificate
        case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__TIMED_OUT: .connection
        case RD_KAFKA_RESP_ERR__SSL: .encryption
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED: .login
        default: error.isDenied ? .rights : .other
        }
    }

    /// A peer names its reason by an alert (RFC 8446 section 6.2): 42 to 46 and 116 about a certificate, 48 about its authority.
    private static func isAboutOwnCertificate(_ text: String) -> Bool {
        text.contains(" alert ") && (text.contains("certificate") || text.contains("unknown ca"))
    }

    /// A broker's name contains no space, and ends before the first colon followed by a space.
    private static func split(_ text: String) -> (place: String, words: String) {
        guard let end = text.firstRange(of: ": "), !text[..<end.lowerBound].contains(" "),
            let slash = text[..<end.lowerBound].lastIndex(of: "/")
        else { return ("", text) }
        var place = text[..<slash]
        if let scheme = place.firstRange(of: "://") { place = place[scheme.upperBound...] }
        var words = text[end.upperBound...]
        // Duration and repetition are useless for a single reading.
        if words.hasSuffix(")"), let after = words.ranges(of: " (after ").last { words = words[..<after.lowerBound] }
        return (String(place), String(words))
    }
}

/// The problems of one client: for each place the first one, because the following ones are mostly its consequences.
struct TroubleList {
    private(set) var all: [KafkaTrouble] = []

    /// - Parameter lines: librdkafka's log lines so far. Its errors report only that a certificate was refused,
    ///   sometimes as a connection error.
    mutating func add(_ error: KafkaError, lines: [KafkaLogLine]) {
        if error.code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN.rawValue { return }
        var trouble = KafkaTrouble(error)
        if trouble.kind == .encryption || trouble.kind == .connection {
            trouble = lines.lazy.compactMap(KafkaTrouble.init).first { $0.place == trouble.place } ?? trouble
        }
        if !all.contains(where: { $0.place == trouble.place && (!$0.place.isEmpty || $0.error == trouble.error) }) {
            all.append(trouble)
        }
    }
}
