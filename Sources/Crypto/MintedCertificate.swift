// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// A certificate authority and one server certificate, created in memory for the simulator, the demo and tests.
///
/// Nothing of it is checked in: each start creates a new pair, and the client uses `authorityPEM` as its only trusted
/// root. So verification remains fully on.
public struct MintedCertificate: Sendable {
    /// The authority's certificate, for a client's `ca_file`.
    public let authorityPEM: [UInt8]
    /// The server's certificate followed by the authority's.
    public let chainPEM: [UInt8]
    /// The server's private key, PKCS#8. A secret.
    public let privateKeyPEM: [UInt8]

    /// A pair that was created earlier and kept.
    public init(authorityPEM: [UInt8], chainPEM: [UInt8], privateKeyPEM: [UInt8]) {
        self.authorityPEM = authorityPEM
        self.chainPEM = chainPEM
        self.privateKeyPEM = privateKeyPEM
    }

    /// Creates a pair.
    ///
    /// - Parameters:
    ///   - hosts: names and IP addresses in the certificate. A value with characters outside those of
    ///     host names and addresses throws, because OpenSSL would read it as a list of extensions.
    ///   - validFrom: start of validity in seconds from now (an hour ago by default, because clocks differ).
    ///   - validUntil: end of validity in seconds from now. A past value gives an expired certificate for tests.
    ///   - isForPeers: also valid for clients, for servers that connect to each other.
    public init(
        hosts: [String] = ["localhost", "127.0.0.1", "::1"], validFrom: Int = -3600, validUntil: Int = 30 * 86_400,
        isForPeers: Bool = false
    ) throws(CryptoFault) {
        let authorityKey = try PrivateKey.generate()
        let serverKey = try PrivateKey.generate()
        let authority = try Certificate()
        try authority.describe(
            subject: "Carillon test authority", key: authorityKey, validFrom: -3600, validUntil: 30 * 86_400)
        try authority.add(NID_basic_constraints, "critical,CA:TRUE")
        try authority.add(NID_key_usage, "critical,keyCertSign,cRLSign")
        try authority.add(NID_subject_key_identifier, "hash")
        try authority.sign(issuer: authority, key: authorityKey)

        let server = try Certificate()
        try server.describe(
            subject: hosts.first ?? "localhost", key: serverKey, validFrom: validFrom, validUntil: validUntil)
        try server.add(NID_basic_constraints, "critical,CA:FALSE")
        try server.add(NID_key_usage, "critical,digitalSignature")
        try server.add(NID_ext_key_usage, isForPeers ? "serverAuth,clientAuth" : "serverAuth")
        try server.add(NID_subject_alt_name, Self.alternativeNames(hosts))
        try server.sign(issuer: authority, key: authorityKey)

        authorityPEM = try authority.pem()
        chainPEM = try server.pem() + authorityPEM
        privateKeyPEM = try serverKey.pem()
    }

    private static func alternativeNames(_ hosts: [String]) throws(CryptoFault) -> String {
        var names: [String] = []
        for host in hosts {
            let plain = host.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x2A: true
                default: false
                }
            }
            guard plain, !host.isEmpty else { throw CryptoFault(.library, "not a host name or address: \(host)") }
            let address = host.contains(":") || host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) }
            names.append((address ? "IP:" : "DNS:") + host)
        }
        return names.joined(separator: ",")
    }
}
