// SPDX-License-Identifier: Apache-2.0
/// The reason why a Kafka client could not be created or a control-plane call failed. Each case names the place and the
/// cure.
public enum KafkaFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// Invalid settings; all of them at once, so that one edit can correct all.
    case configuration([KafkaConfigurationProblem])
    /// librdkafka refused to start with these settings as a whole.
    case creation(String)
    /// A broker call failed or timed out; `doing` names the call.
    case call(doing: String, KafkaError)
    /// The system refused a descriptor for the wake-up.
    case wakeup(errno: Int32)

    /// librdkafka's reason, with the cure where its words hide it.
    static func withCure(_ why: String) -> String {
        guard why.contains("PKCS#12"), why.contains("unsupported") else { return why }
        return why + ": OpenSSL keeps such old algorithms (RC2, for example) apart. Set kafka.options ssl.providers to "
            + "\"default,legacy\", or export the keystore again with AES"
    }

    public var description: String {
        switch self {
        case .configuration(let problems): problems.map(\.description).joined(separator: "; ")
        case .creation(let text): "Kafka client refused to start: \(text)"
        case .call(let doing, let error): "\(doing) failed: \(error)"
        case .wakeup(let number): "no descriptor for Kafka's wake-up, errno \(number): raise the open files limit"
        }
    }
}

/// One invalid setting, by the key that the user wrote.
public struct KafkaConfigurationProblem: Equatable, Sendable, CustomStringConvertible {
    /// The option's key as written, or `brokers` / `group` / `topics`.
    public let key: String
    /// The fault and a correct value. Never contains a secret's value.
    public let why: String

    public init(key: String, why: String) {
        self.key = key
        self.why = why
    }

    public var description: String { "\(key): \(why)" }
}
