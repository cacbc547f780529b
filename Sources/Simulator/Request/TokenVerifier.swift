// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import JSON

/// Verifies provider tokens, each distinct one once, because a signature check costs as much as forty requests.
public struct TokenVerifier {
    /// The result of a verification, remembered with the token's bytes.
    public struct Standing: Equatable, Sendable {
        /// The signature is valid, the key is known and its team matches.
        public let isGenuine: Bool
        /// `iat`, seconds.
        public let issuedAt: Int64
        public let teamID: String
        /// The id of the signing key; empty if not genuine.
        public let keyID: String
        /// First 16 hexadecimal digits of the header's SHA-256. A ledger may show it.
        public let fingerprint: String
    }

    /// Tokens older than this are expired ("Establishing a token-based connection to APNs").
    public static let ageMaxSeconds: Int64 = 3600
    /// Maximum by which a token's clock may be ahead of ours.
    public static let skewSeconds: Int64 = 300
    /// Tokens remembered. A sender uses one or two at a time.
    static let rememberedMax = 256

    private let keys: [ProviderKey]
    private var remembered: [[UInt8]: Standing] = [:]

    /// - Parameter keys: the known keys. An empty list accepts every token as genuine and requires none.
    public init(keys: [ProviderKey]) {
        self.keys = keys
    }

    /// Returns whether requests need a token.
    public var asksForToken: Bool { !keys.isEmpty }

    /// The verification result of an `authorization` value.
    public mutating func standing(_ authorization: ArraySlice<UInt8>) -> Standing {
        let value = Array(authorization)
        if let known = remembered[value] { return known }
        let standing = judge(value)
        if remembered.count >= Self.rememberedMax { remembered.removeAll(keepingCapacity: true) }
        remembered[value] = standing
        return standing
    }

    /// The rejection for a token at the time `now` (seconds); nil if the token is accepted.
    public static func rejection(_ standing: Standing?, team: String?, now: Int64) -> Rejection? {
        guard let standing else { return Rejection(403, "MissingProviderToken") }
        guard standing.isGenuine, standing.issuedAt <= now + skewSeconds else {
            return Rejection(403, "InvalidProviderToken")
        }
        if now - standing.issuedAt > ageMaxSeconds { return Rejection(403, "ExpiredProviderToken") }
        // The first push binds a connection to its team.
        if let team, team != standing.teamID { return Rejection(403, "InvalidProviderToken") }
        return nil
    }

    private func judge(_ value: [UInt8]) -> Standing {
        let fingerprint = Hex.string(SHA256.hash(value).prefix(8))
        func standing(_ isGenuine: Bool, _ issuedAt: Int64 = 0, _ key: ProviderKey? = nil) -> Standing {
            Standing(
                isGenuine: isGenuine, issuedAt: issuedAt, teamID: key?.teamID ?? "", keyID: key?.keyID ?? "",
                fingerprint: fingerprint)
        }
        guard let space = value.firstIndex(of: 0x20),
            String(decoding: value[..<space], as: UTF8.self).lowercased() == "bearer"
        else { return standing(false) }
        let parts = value[(space + 1)...].split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
            // RFC 7518 section 3.4; APNs supports nothing else.
            header["alg"]?.string == "ES256",
            let key = keys.first(where: { $0.keyID == header["kid"]?.string }),
            claims["iss"]?.string == key.teamID, let issuedAt = Self.seconds(claims["iat"]),
            let signature = Base64URL.decode(parts[2]),
            Self.isSigned(value[parts[0].startIndex..<parts[1].endIndex], signature, key.publicKey)
        else { return standing(false) }
        return standing(true, issuedAt, key)
    }

    /// `iat` is a NumericDate, which may have a fraction (RFC 7519 section 2). PyAPNs2 sends Python's `time.time()`,
    /// and APNs accepts it.
    private static func seconds(_ claim: JSONTree?) -> Int64? {
        // The bound keeps age sums from overflowing.
        guard let number = claim?.double, number >= 0, number < Double(Int64(1) << 40) else { return nil }
        return Int64(number)
    }

    /// Accepts R‖S of 64 bytes (RFC 7518 section 3.4), and DER as Java's `SHA256withECDSA` writes it, because Pushy
    /// sends DER and APNs accepts it.
    private static func isSigned(_ text: ArraySlice<UInt8>, _ signature: [UInt8], _ key: PublicKey) -> Bool {
        key.verifyES256(signature, of: text) || key.verifyES256(der: signature, of: text)
    }

    private static func object(_ part: ArraySlice<UInt8>) -> JSONTree? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        return try? JSONTree(parsing: bytes, maxBytes: 4096, maxDepth: 4)
    }
}
