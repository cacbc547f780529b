// SPDX-License-Identifier: Apache-2.0
import Redis

/// A link to an unverified peer or in clear text, or outside code that runs in this process.
///
/// Each needs its waiver by name in `waivers`; otherwise the configuration is refused. Addresses of this machine and
/// unix sockets need none.
public struct WeakLink: Sendable, Equatable {
    /// The names that `waivers` accepts.
    public enum Waiver: String, Sendable, CaseIterable {
        /// `redis://` to another machine: users, tokens and the password travel in clear text, and the peer is not
        /// verified.
        case plainRedis = "plain_redis"
        /// SASL without TLS to another machine: the login travels in clear text, and the peer is not verified.
        case plainSASL = "plain_sasl"
        /// A broker's certificate is not verified.
        case unverifiedKafka = "unverified_kafka"
        /// The name in a broker's certificate is not verified.
        case unnamedKafka = "unnamed_kafka"
        /// Libraries named in the configuration are loaded into the process.
        case kafkaPlugins = "kafka_plugins"
        /// Unsigned OAUTHBEARER tokens.
        case unsignedJWT = "unsigned_jwt"
    }

    /// `redis` or `kafka`.
    public let link: String
    public let waiver: Waiver
    /// The librdkafka property that makes it weak; nil for Redis.
    public let option: String?
    /// The weakness, and the cure that needs no waiver.
    let why: String

    var refusal: String { "\(why), or accept the risk with waivers: [\(waiver.rawValue)]" }

    /// The text for a waived link.
    public var note: String { "\(why) (waived: \(waiver.rawValue))" }

    /// - Returns: whether a host or `host:port` is this machine by its text: `localhost`, 127.0.0.0/8 or ::1.
    package static func isLoopback(_ place: String) -> Bool {
        if place == "::1" || place.hasPrefix("[::1]") { return true }
        let host = place.split(separator: ":", omittingEmptySubsequences: false).first ?? ""
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.first == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension Configuration {
    /// Every weak link, waived or not.
    public var weakLinks: [WeakLink] { redis.weakLinks + kafka.weakLinks }

    /// Waivers without a weak link.
    public var idleWaivers: [WeakLink.Waiver] {
        let needed = Set(weakLinks.map(\.waiver))
        return waivers.subtracting(needed).sorted { $0.rawValue < $1.rawValue }
    }
}

extension Configuration.RedisSection {
    fileprivate var weakLinks: [WeakLink] {
        let far = topology.endpoints.first { endpoint in
            guard case .tcp(let host, _) = endpoint.address else { return false }
            return !endpoint.usesTLS && !WeakLink.isLoopback(host)
        }
        guard let far else { return [] }
        return [
            WeakLink(
                link: "redis", waiver: .plainRedis, option: nil,
                why: "\(far): tokens and marks travel in clear, and anybody may answer: use rediss://")
        ]
    }
}

extension Configuration.KafkaSection {
    fileprivate var weakLinks: [WeakLink] {
        var links: [WeakLink] = []
        func add(_ waiver: WeakLink.Waiver, _ option: String, _ why: String) {
            links.append(
                WeakLink(link: "kafka", waiver: waiver, option: option, why: "kafka.options.\(option): \(why)"))
        }
        func value(_ option: String) -> String { (options[option] ?? "").lowercased() }
        // librdkafka's spellings of false.
        func isOff(_ option: String) -> Bool { ["false", "f", "0"].contains(value(option)) }
        let isFar = !brokers.split(separator: ",").allSatisfy { broker in
            WeakLink.isLoopback(String(broker.drop { $0 == " " }).lowercased())
        }
        let security = value("security.protocol")
        if security == "sasl_plaintext", isFar {
            add(.plainSASL, "security.protocol", "the login travels in clear, and anybody may answer: use SASL_SSL")
        }
        if security.hasSuffix("ssl") {
            if isOff("enable.ssl.certificate.verification") {
                add(
                    .unverifiedKafka, "enable.ssl.certificate.verification",
                    "any certificate is accepted: leave it on and name the authority in ssl.ca.location")
            }
            if value("ssl.endpoint.identification.algorithm") == "none" {
                add(
                    .unnamedKafka, "ssl.endpoint.identification.algorithm",
                    "a certificate for another name is accepted: set it to https")
            }
        }
        for option in ["plugin.library.paths", "ssl.engine.location"] where !value(option).isEmpty {
            add(.kafkaPlugins, option, "foreign code runs in this process and sees every secret: leave it out")
        }
        if ["true", "t", "1"].contains(value("enable.sasl.oauthbearer.unsecure.jwt")) {
            add(
                .unsignedJWT, "enable.sasl.oauthbearer.unsecure.jwt",
                "unsigned tokens: use sasl.oauthbearer.method=oidc")
        }
        return links
    }
}
