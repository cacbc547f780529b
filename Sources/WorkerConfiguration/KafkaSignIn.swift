// SPDX-License-Identifier: Apache-2.0
import Glibc
import Kafka

/// The rules of `kafka.options` about signing in to the brokers.
///
/// librdkafka accepts most mistakes here value by value. Some it finds when a client is created, in words of its own, and
/// some never: the client then waits for a login that cannot come.
struct KafkaSignIn {
    let options: [String: String]
    let library: KafkaLibrary

    /// Reasons to refuse the configuration, by key.
    var problems: [KafkaConfigurationProblem] {
        protocolProblem + mechanismProblems + oidcProblems + certificateProblems + fileProblems
    }

    /// Options without an effect, by key.
    var warnings: [KafkaConfigurationProblem] {
        var found: [KafkaConfigurationProblem] = []
        if let mechanism, !usesSASL, protocolProblem.isEmpty {
            found.append(problem(mechanism.key, "has no effect without security.protocol: SASL_SSL"))
        }
        if let key = ["ssl.certificate.location", "ssl.keystore.location"].first(where: { options[$0] != nil }),
            !usesTLS, protocolProblem.isEmpty
        {
            found.append(problem(key, "has no effect without security.protocol: SSL or SASL_SSL"))
        }
        return found
    }

    private func problem(_ key: String, _ why: String) -> KafkaConfigurationProblem {
        KafkaConfigurationProblem(key: key, why: why)
    }

    // MARK: Protocol

    private static let protocols = ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]

    /// librdkafka ignores the case here.
    private var security: String { (options["security.protocol"] ?? "plaintext").lowercased() }
    private var usesSASL: Bool { security.hasPrefix("sasl_") }
    private var usesTLS: Bool { security.hasSuffix("ssl") }

    private var protocolProblem: [KafkaConfigurationProblem] {
        if Self.protocols.contains(security) { return [] }
        return [problem("security.protocol", "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")]
    }

    // MARK: Mechanism

    /// A mechanism of SASL with the feature and the options that it needs.
    private struct Mechanism {
        let name: String
        let feature: String
        var needs: [String] = []
    }

    private static let login = ["sasl.username", "sasl.password"]
    private static let mechanisms = [
        Mechanism(name: "PLAIN", feature: "sasl_plain", needs: login),
        Mechanism(name: "SCRAM-SHA-256", feature: "sasl_scram", needs: login),
        Mechanism(name: "SCRAM-SHA-512", feature: "sasl_scram", needs: login),
        Mechanism(name: "OAUTHBEARER", feature: "sasl_oauthbearer"),
        Mechanism(name: "GSSAPI", feature: "sasl_gssapi"),
    ]

    /// librdkafka has two names of the same property.
    private var mechanism: (key: String, name: String)? {
        for key in ["sasl.mechanism", "sasl.mechanisms"] {
            if let name = options[key] { return (key, name) }
        }
        return nil
    }

    private var mechanismProblems: [KafkaConfigurationProblem] {
        guard let mechanism else {
            // Without one librdkafka takes GSSAPI, which is meant only where a Kerberos option is set.
            let isMeant = options.keys.contains { $0.hasPrefix("sasl.kerberos.") }
            guard usesSASL, !isMeant, protocolProblem.isEmpty else { return [] }
            return [problem("security.protocol", "needs sasl.mechanism: one of \(known)")]
        }
        guard let rule = Self.mechanisms.first(where: { $0.name == mechanism.name }) else {
            return [problem(mechanism.key, unknown(mechanism.name))]
        }
        guard library.features.contains(rule.feature) else {
            let why = "librdkafka \(library.version) is built without \(rule.name); it has \(known)"
            return [problem(mechanism.key, why)]
        }
        let missing = rule.needs.filter { options[$0] == nil }
        guard usesSASL, !missing.isEmpty else { return [] }
        let places = missing.map { $0 == "sasl.password" ? "\($0) in kafka.secret_files" : "\($0) in kafka.options" }
        return [problem(mechanism.key, "\(rule.name) needs \(places.joined(separator: " and "))")]
    }

    private func unknown(_ name: String) -> String {
        let upper = name.uppercased()
        if Self.mechanisms.contains(where: { $0.name == upper }) { return "is written \(upper)" }
        // AWS keys sign its tokens, by code that no librdkafka has.
        if upper == "AWS_MSK_IAM" {
            return "librdkafka cannot sign in by AWS_MSK_IAM: switch on SASL/SCRAM (SASL_SSL with SCRAM-SHA-512) or "
                + "client certificates (SSL) at the MSK cluster, and use that"
        }
        return "librdkafka does not know it; it has \(known)"
    }

    /// The mechanisms of the loaded library.
    private var known: String {
        let names = Self.mechanisms.filter { library.features.contains($0.feature) }.map(\.name)
        return names.isEmpty ? "no other" : names.joined(separator: ", ")
    }

    // MARK: OAUTHBEARER

    var lacksOIDC: Bool { !library.features.contains("oidc") }

    private static let oidcPrefix = "sasl.oauthbearer."

    /// All options with this prefix but one are OIDC's.
    func isOfOIDC(_ key: String) -> Bool { key.hasPrefix(Self.oidcPrefix) && key != "sasl.oauthbearer.config" }

    private var oidcProblems: [KafkaConfigurationProblem] {
        let keys = options.keys.filter(isOfOIDC).sorted()
        let usesOIDC = options["sasl.oauthbearer.method"]?.lowercased() == "oidc"
        if lacksOIDC, let key = keys.first(where: { $0.hasSuffix(".method") }) ?? keys.first {
            return [
                problem(
                    key,
                    "librdkafka \(library.version) is built without OIDC: run a carillon that loads a librdkafka with "
                        + "oidc in its builtin.features, or sign in by SCRAM-SHA-512 or a client certificate")
            ]
        }
        guard usesSASL, let mechanism, mechanism.name == "OAUTHBEARER", !usesOIDC else {
            return usesOIDC ? clientProblems : []
        }
        // Without a method librdkafka asks the program for a token. Only unsigned tokens need no answer.
        let unsigned = (options["enable.sasl.oauthbearer.unsecure.jwt"] ?? "").lowercased()
        let isUnsigned = ["true", "t", "1"].contains(unsigned)
        return isUnsigned ? [] : [problem(mechanism.key, "OAUTHBEARER needs sasl.oauthbearer.method: oidc")]
    }

    /// The needs of client credentials. Other grants, and tokens of a cloud's metadata server, need less.
    private var clientProblems: [KafkaConfigurationProblem] {
        let others = ["sasl.oauthbearer.grant.type", "sasl.oauthbearer.metadata.authentication.type"]
        guard !others.contains(where: { options[$0] != nil }) else { return [] }
        func isMissing(_ names: [String]) -> Bool { !names.contains { options[Self.oidcPrefix + $0] != nil } }
        var missing: [String] = []
        if isMissing(["token.endpoint.url"]) { missing.append("token.endpoint.url") }
        if isMissing(["client.id", "client.credentials.client.id"]) { missing.append("client.id") }
        if isMissing(["client.secret", "client.credentials.client.secret"]) {
            missing.append("client.secret (in kafka.secret_files)")
        }
        if missing.isEmpty { return [] }
        let list = missing.map { Self.oidcPrefix + $0 }.joined(separator: ", ")
        return [problem("sasl.oauthbearer.method", "oidc needs \(list)")]
    }

    // MARK: Certificates

    private var certificateProblems: [KafkaConfigurationProblem] {
        guard usesTLS else { return [] }
        func has(_ part: String) -> Bool { options["ssl.\(part).location"] != nil || options["ssl.\(part).pem"] != nil }
        if has("certificate"), !has("key") {
            return [problem("ssl.certificate.location", "needs the key of the certificate: ssl.key.location")]
        }
        if has("key"), !has("certificate") {
            return [problem("ssl.key.location", "needs the certificate of the key: ssl.certificate.location")]
        }
        return []
    }

    /// librdkafka says of such a file only "system lib".
    private var fileProblems: [KafkaConfigurationProblem] {
        let names = ["ssl.ca", "ssl.certificate", "ssl.key", "ssl.keystore", "ssl.crl"].map { "\($0).location" }
        return (names + ["sasl.kerberos.keytab"]).compactMap { key in
            guard let path = options[key], !path.isEmpty, !(key == "ssl.ca.location" && path == "probe"),
                access(path, R_OK) != 0
            else { return nil }
            return problem(key, "\(path): \(String(cString: strerror(errno)))")
        }
    }
}
