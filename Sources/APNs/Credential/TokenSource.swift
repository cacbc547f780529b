// SPDX-License-Identifier: Apache-2.0
import Crypto

/// The provider tokens of one key: signs according to `TokenPlan` and keeps the newest.
///
/// Loop-bound. Clients of one thread that share a key should share its source, so that they use one token.
final class TokenSource {
    private let key: PrivateKey
    private let keyID: String
    private let teamID: String
    private var plan = TokenPlan()
    private var newest: ProviderToken?
    /// The previous token while it is valid; used again after a renewal that was too early.
    private var previous: ProviderToken?
    private var mintedCount = 0

    init(key: PrivateKey, keyID: String, teamID: String) {
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
    }

    /// The token for a new connection; nil if signing failed, which only a broken OpenSSL causes.
    func current(nowMs: Int64) -> ProviderToken? {
        if case .mint(let issuedAtMs, let version) = plan.use(nowMs: nowMs) {
            mint(issuedAtMs: issuedAtMs, version: version)
        }
        return newest
    }

    /// 403 ExpiredProviderToken for `version`. Returns false if the credential must be paused.
    func renewAfterExpiry(version: Int, nowMs: Int64) -> Bool {
        switch plan.expired(version: version, nowMs: nowMs) {
        case .alreadyRenewed: return true
        case .mint(let issuedAtMs, let version):
            mint(issuedAtMs: issuedAtMs, version: version)
            return newest?.version == version
        case .pause: return false
        }
    }

    /// 429 TooManyProviderTokenUpdates: no other token is signed for a while, and the previous one is used again while
    /// it is valid.
    func holdSigning(nowMs: Int64) {
        guard plan.tooManyUpdates(nowMs: nowMs), let previous, let newest,
            nowMs &- previous.issuedAtMs < TokenPlan.ageMaxMs - 60_000
        else { return }
        plan.takeBack(issuedAtMs: previous.issuedAtMs)
        self.newest = ProviderToken(
            header: previous.header, issuedAtMs: previous.issuedAtMs, version: newest.version + 1)
        self.previous = nil
    }

    /// Age of the newest token; nil before the first.
    func ageSeconds(nowMs: Int64) -> Double? { newest.map { Double(nowMs &- $0.issuedAtMs) / 1000 } }

    /// Signings since the last call, for the metric.
    func takeMinted() -> Int {
        defer { mintedCount = 0 }
        return mintedCount
    }

    private func mint(issuedAtMs: Int64, version: Int) {
        let token = try? ProviderToken.mint(
            key: key, keyID: keyID, teamID: teamID, issuedAtMs: issuedAtMs, version: version)
        guard let token else { return }
        previous = newest
        newest = token
        mintedCount += 1
    }
}

/// One connection's provider token.
struct ConnectionToken {
    private(set) var token: ProviderToken
    private let firstUsedAtMs: Int64

    init(_ token: ProviderToken, nowMs: Int64) {
        self.token = token
        self.firstUsedAtMs = nowMs
    }

    /// Changes to the newest token if the plan allows it.
    mutating func refresh(from source: TokenSource, nowMs: Int64) {
        guard let newest = source.current(nowMs: nowMs), newest !== token else { return }
        let adopts = TokenPlan.adopts(
            newestIssuedAtMs: newest.issuedAtMs, over: token.issuedAtMs, firstUsedAtMs: firstUsedAtMs, nowMs: nowMs)
        if adopts { self = ConnectionToken(newest, nowMs: nowMs) }
    }
}
