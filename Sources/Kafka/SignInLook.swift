// SPDX-License-Identifier: Apache-2.0
import CRdkafka

extension KafkaConfiguration {
    /// librdkafka's reason against the settings of TLS and SASL as a whole, such as a key that is not the certificate's;
    /// nil if it takes them.
    ///
    /// A client is created and ended for it, one without brokers: nothing is asked. Control plane, for `check`.
    public func signInRefusal() -> String? {
        guard let conf = rd_kafka_conf_new() else { return "out of memory" }
        rd_kafka_conf_set(conf, "log_level", "0", nil, 0)
        // With OIDC each client asks for a token at once. Its TLS can be looked at alone.
        let isOIDC = options["sasl.oauthbearer.method"]?.lowercased() == "oidc"
        let parts = ["security.", "ssl.", "enable.ssl."] + (isOIDC ? [] : ["sasl.", "enable.sasl."])
        for (key, value) in options where parts.contains(where: key.hasPrefix) {
            rd_kafka_conf_set(conf, key, value, nil, 0)
        }
        if isOIDC { rd_kafka_conf_set(conf, "security.protocol", "ssl", nil, 0) }
        var made: OpaquePointer?
        let why = withErrorText { text, capacity in
            made = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, capacity)
            return made != nil
        }
        if let made {
            rd_kafka_destroy(made)
        } else {
            rd_kafka_conf_destroy(conf)
        }
        return why.map(KafkaFault.withCure)
    }
}
