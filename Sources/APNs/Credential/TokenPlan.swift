// SPDX-License-Identifier: Apache-2.0
/// When to sign a provider token, and when a connection changes to a newer one; pure over injected wall time.
///
/// Apple refuses tokens older than an hour and answers 429 to tokens renewed within twenty minutes. Whether that is
/// counted per connection or per key is disputed, so both readings are respected. `iat` is rounded down to a half-hour
/// slot, so that every process of a team uses the same time. A connection keeps its token for at least 21 minutes after
/// its first use there; the token is then at most 52 minutes old.
struct TokenPlan: Equatable {
    static var slotMs: Int64 { 30 * 60_000 }
    /// Minimum time between two tokens on one connection, and between two forced signings.
    static var renewalMinMs: Int64 { 21 * 60_000 }
    /// Age at which a token is always replaced.
    static var ageMaxMs: Int64 { 55 * 60_000 }
    /// A token issued further ahead than this was signed under a wrong clock.
    static var aheadMaxMs: Int64 { 60_000 }
    /// `iat` is this far in the past, because a server with a slow clock would otherwise see a token from the future.
    static var lagMs: Int64 { 60_000 }

    private(set) var issuedAtMs: Int64?
    private(set) var version = 0
    private var forcedAtMs: Int64?
    private var holdUntilMs: Int64 = .min

    /// The step before the source's newest token is used.
    enum Step: Equatable {
        case keep
        case mint(issuedAtMs: Int64, version: Int)
    }

    /// The newest token is about to be given to a connection.
    mutating func use(nowMs: Int64) -> Step {
        guard let issuedAtMs else { return issue(slotStart(nowMs)) }
        let age = nowMs &- issuedAtMs
        if age < -Self.aheadMaxMs || age >= Self.ageMaxMs { return issue(slotStart(nowMs)) }
        if nowMs < holdUntilMs { return .keep }
        // After a forced signing the next slot waits until the minimum time of the forced token has passed.
        if let forcedAtMs, nowMs &- forcedAtMs < Self.renewalMinMs, nowMs >= forcedAtMs { return .keep }
        let slot = slotStart(nowMs)
        return slot > issuedAtMs ? issue(slot) : .keep
    }

    /// The reaction to 403 ExpiredProviderToken.
    enum ExpiredStep: Equatable {
        /// A newer one exists already: another answer of the same burst.
        case alreadyRenewed
        case mint(issuedAtMs: Int64, version: Int)
        /// Signing again would not help (the clock is wrong) or would count as abuse: pause and notify the operator.
        case pause
    }

    /// APNs refused the token `version` as expired.
    mutating func expired(version refused: Int, nowMs: Int64) -> ExpiredStep {
        if refused < version { return .alreadyRenewed }
        if nowMs < holdUntilMs { return .pause }
        if let forcedAtMs, nowMs >= forcedAtMs, nowMs &- forcedAtMs < Self.renewalMinMs { return .pause }
        forcedAtMs = nowMs
        guard case .mint(let issuedAtMs, let version) = issue(nowMs &- Self.lagMs) else { return .pause }
        return .mint(issuedAtMs: issuedAtMs, version: version)
    }

    /// 429 TooManyProviderTokenUpdates: the present token remains in use, and no other is signed for a while.
    ///
    /// - Returns: true for the first answer of a burst.
    mutating func tooManyUpdates(nowMs: Int64) -> Bool {
        let isFirst = nowMs >= holdUntilMs
        holdUntilMs = nowMs &+ Self.renewalMinMs
        return isFirst
    }

    /// An older token is in use again, with a new version number.
    mutating func takeBack(issuedAtMs: Int64) {
        self.issuedAtMs = issuedAtMs
        version += 1
    }

    /// - Returns: whether a connection should change from its token to the newest.
    static func adopts(
        newestIssuedAtMs newest: Int64, over usedIssuedAtMs: Int64, firstUsedAtMs: Int64, nowMs: Int64
    ) -> Bool {
        guard newest != usedIssuedAtMs else { return false }
        let usedAge = nowMs &- usedIssuedAtMs
        if usedAge >= ageMaxMs || usedAge < -aheadMaxMs { return true }
        return newest > usedIssuedAtMs && nowMs &- firstUsedAtMs >= renewalMinMs
    }

    /// The slot that began at least `lagMs` ago.
    private func slotStart(_ nowMs: Int64) -> Int64 {
        let late = nowMs &- Self.lagMs
        return late - late % Self.slotMs
    }

    private mutating func issue(_ atMs: Int64) -> Step {
        issuedAtMs = atMs
        version += 1
        return .mint(issuedAtMs: atMs, version: version)
    }
}
