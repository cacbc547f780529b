// SPDX-License-Identifier: Apache-2.0
import Digits
package import PushCore
package import WorkerConfiguration

/// One credential set of an app, or a client that uses it.
protocol CredentialSet {
    /// The value for a bind's `cert`.
    var credentialName: String { get }
    /// A provider key (`.p8`), not a certificate.
    var isProviderKey: Bool { get }
}

extension Sequence where Element: CredentialSet {
    /// The set for a token: the one in its bind, else the first; for a Live Activity one with a provider key. Without
    /// such a set it is the first, and the push is refused by name (`PushFault.needsTokenCredential`).
    func choice(for token: borrowing TokenRecord) -> Element? {
        var fallback: Element?
        var unable: Element?
        for set in self {
            guard set.isProviderKey || !token.type.needsProviderKey else {
                if unable == nil { unable = set }
                continue
            }
            if set.credentialName.isSame(as: token.credential) { return set }
            if fallback == nil { fallback = set }
        }
        return fallback ?? unable
    }
}

extension AppContext.Client: CredentialSet {
    var credentialName: String { credential }
    var isProviderKey: Bool { usesProviderKey }
}

extension Configuration.Credential: CredentialSet {
    var credentialName: String { name }
}

extension Configuration.App {
    /// The credential for a token, by the rule for choosing a client.
    package func credential(for token: TokenRecord) -> Configuration.Credential? { credentials.choice(for: token) }
}
