import Crypto

/// The provider tokens of one key: signs as `TokenPlan` says and keeps the newest.
///
/// Loop-bound. The clients of one thread that share a key should share its source, so that they show one token.
final class TokenSource {
    private let key: PrivateKey
    private let keyID: String
    private let teamID: String
    private var plan = TokenPlan()
    private var newest: ProviderToken?
    private var mintedCount = 0

    init(key: PrivateKey, keyID: String, teamID: String) {
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
    }

    /// The token a new connection starts with; nil when signing failed, which only a broken OpenSSL does.
    func current(nowMs: Int64) -> ProviderToken? {
        if case .mint(let issuedAtMs, let version) = plan.use(nowMs: nowMs) {
            mint(issuedAtMs: issuedAtMs, version: version)
        }
        return newest
    }

    /// 403 ExpiredProviderToken about `version`; false: sending on would be wrong, the credential is to be paused.
    func renewAfterExpiry(version: Int, nowMs: Int64) -> Bool {
        switch plan.expired(version: version, nowMs: nowMs) {
        case .alreadyRenewed: return true
        case .mint(let issuedAtMs, let version):
            mint(issuedAtMs: issuedAtMs, version: version)
            return newest?.version == version
        case .pause: return false
        }
    }

    func holdSigning(nowMs: Int64) { plan.tooManyUpdates(nowMs: nowMs) }

    /// Signings since the last call, for the metric.
    func takeMinted() -> Int {
        defer { mintedCount = 0 }
        return mintedCount
    }

    private func mint(issuedAtMs: Int64, version: Int) {
        let token = try? ProviderToken.mint(
            key: key, keyID: keyID, teamID: teamID, issuedAtMs: issuedAtMs, version: version)
        guard let token else { return }
        newest = token
        mintedCount += 1
    }
}

/// The token as one connection uses it.
struct ConnectionToken {
    private(set) var token: ProviderToken
    private let firstUsedAtMs: Int64

    init(_ token: ProviderToken, nowMs: Int64) {
        self.token = token
        self.firstUsedAtMs = nowMs
    }

    /// Goes over to the newest token where the plan allows it.
    mutating func refresh(from source: TokenSource, nowMs: Int64) {
        guard let newest = source.current(nowMs: nowMs), newest !== token else { return }
        let adopts = TokenPlan.adopts(
            newestIssuedAtMs: newest.issuedAtMs, over: token.issuedAtMs, firstUsedAtMs: firstUsedAtMs, nowMs: nowMs)
        if adopts { self = ConnectionToken(newest, nowMs: nowMs) }
    }
}
