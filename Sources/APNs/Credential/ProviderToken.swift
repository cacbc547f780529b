// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits

/// One signed provider token: the `authorization` value and the data for its age.
final class ProviderToken: Sendable {
    /// `bearer <jwt>`, ready to send.
    let header: [UInt8]
    let issuedAtMs: Int64
    /// Counts the tokens of one source, so that a late 403 for an older one is recognised.
    let version: Int

    init(header: [UInt8], issuedAtMs: Int64, version: Int) {
        self.header = header
        self.issuedAtMs = issuedAtMs
        self.version = version
    }

    /// Signs a token: ES256 over alg, kid, iss and iat only ("Establishing a token-based connection").
    ///
    /// The same key, team and time give the same bytes in every process.
    static func mint(
        key: PrivateKey, keyID: String, teamID: String, issuedAtMs: Int64, version: Int
    ) throws(CryptoFault) -> ProviderToken {
        let head = Base64URL.encode(Array(#"{"alg":"ES256","kid":"\#(keyID)"}"#.utf8))
        let claims = Base64URL.encode(Array(#"{"iss":"\#(teamID)","iat":\#(issuedAtMs / 1000)}"#.utf8))
        let signed = head + [UInt8(ascii: ".")] + claims
        let signature = Base64URL.encode(try key.signES256Deterministically(signed))
        return ProviderToken(
            header: Array("bearer ".utf8) + signed + [UInt8(ascii: ".")] + signature,
            issuedAtMs: issuedAtMs, version: version)
    }
}
