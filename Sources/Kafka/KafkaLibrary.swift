// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// The abilities of a librdkafka: its version, and the parts that it was built with.
public struct KafkaLibrary: Sendable, Equatable {
    public let version: String
    /// The words of its property `builtin.features`, such as `sasl_scram` and `oidc`.
    public let features: Set<String>

    public init(version: String, features: Set<String>) {
        self.version = version
        self.features = features
    }

    /// The library that this process uses.
    public static let loaded = KafkaLibrary(
        version: KafkaConfiguration.libraryVersion,
        features: Set(builtinFeatures.split(separator: ",").map { String($0.filter { $0 != " " }) }))

    private static var builtinFeatures: String {
        guard let conf = rd_kafka_conf_new() else { return "" }
        defer { rd_kafka_conf_destroy(conf) }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer in
            buffer.initialize(repeating: 0)
            var size = buffer.count
            guard let base = buffer.baseAddress,
                rd_kafka_conf_get(conf, "builtin.features", base, &size) == RD_KAFKA_CONF_OK
            else { return "" }
            return String(cString: base)
        }
    }
}
