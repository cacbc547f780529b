import Digits
import PushCore

/// One credential set of an app, or a client that sends with it.
protocol CredentialSet {
    /// What a bind's `cert` may ask for.
    var credentialName: String { get }
    /// A provider key (`.p8`), not a certificate.
    var isProviderKey: Bool { get }
}

extension Sequence where Element: CredentialSet {
    /// The set for a token: the one that it was bound with, else the first; for a Live Activity of those with a provider key.
    /// Where none has one it is the first, and the push is refused by name (`PushFault.needsTokenCredential`).
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
