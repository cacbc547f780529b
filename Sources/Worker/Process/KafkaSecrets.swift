// SPDX-License-Identifier: Apache-2.0
import Crypto
import Telemetry

/// Digests of what librdkafka reads once, when a client is made: secrets, and files that it opens itself.
struct KafkaSecrets: Sendable {
    private var digests: [String: [UInt8]] = [:]

    private static let files = [
        "ssl.key.location", "ssl.keystore.location", "ssl.certificate.location", "ssl.ca.location", "ssl.crl.location",
        "sasl.kerberos.keytab",
    ]

    init(_ kafka: Configuration.KafkaSection) {
        for (key, value) in kafka.secrets {
            digests["kafka.secret_files.\(key)"] = SHA256.hash(Array(value.utf8))
        }
        for key in Self.files {
            guard let path = kafka.options[key], case .bytes(let bytes) = SmallFile.read(path) else { continue }
            digests["kafka.options.\(key)"] = SHA256.hash(bytes)
        }
    }

    /// - Returns: the keys with another content, in order. The list of changed keys names a key that came or went.
    func changes(to fresh: KafkaSecrets) -> [String] {
        digests.filter { key, digest in fresh.digests[key].map { $0 != digest } ?? false }.keys.sorted()
    }
}
