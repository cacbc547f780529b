// SPDX-License-Identifier: Apache-2.0
public import Crypto

/// A provider key that the simulator accepts: the public side of a `.p8`.
public struct ProviderKey: Sendable {
    /// The ten characters of a token's `kid`.
    public let keyID: String
    /// The team id of a token's `iss`.
    public let teamID: String
    /// Verifies the token's signature.
    public let publicKey: PublicKey

    /// Creates a key from its three parts.
    public init(keyID: String, teamID: String, publicKey: PublicKey) {
        self.keyID = keyID
        self.teamID = teamID
        self.publicKey = publicKey
    }
}
