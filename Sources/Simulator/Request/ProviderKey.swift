public import Crypto

/// A provider key that the simulator knows: what Apple keeps of a `.p8`.
public struct ProviderKey: Sendable {
    /// The ten characters that a token's `kid` names.
    public let keyID: String
    /// The team that a token's `iss` must name.
    public let teamID: String
    /// Checks the token's signature.
    public let publicKey: PublicKey

    /// All three parts.
    public init(keyID: String, teamID: String, publicKey: PublicKey) {
        self.keyID = keyID
        self.teamID = teamID
        self.publicKey = publicKey
    }
}
