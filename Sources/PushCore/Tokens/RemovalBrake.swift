// SPDX-License-Identifier: Apache-2.0
/// Stops removing tokens when one cause takes too large a share of an app's pushes: of all answers in a window, or of
/// the last 200, so that many good answers before the spike do not hide it.
///
/// A wrong topic, environment or key looks exactly like dead tokens. Without the brake, one bad deployment would delete
/// every token of the app (contract section 5, Outcomes). A machine without a clock: `nowMs` comes from outside and
/// should rise; a clock that goes back only lengthens the window.
public struct RemovalBrake: Sendable {
    public struct Limits: Sendable, Equatable {
        /// The age up to which answers count.
        public var windowMs: Int64 = 300_000
        /// Fewer removals of one cause in the window, or among the last 200 answers, never engage it, because small
        /// apps can have bad luck. With a value above 200 the last answers alone never engage it.
        public var minimum = 50
        /// The share of removals of one cause among all answers, 0-1, that engages it. A value above 1 disables it.
        public var share = 0.3
        /// It stays engaged this long after the last answer that would have engaged it.
        public var coolDownMs: Int64 = 600_000

        public init() {}
    }

    /// The cause of a token's removal.
    public enum Cause: Int, Sendable, CaseIterable {
        /// 410, with either of its reasons.
        case gone
        case badDeviceToken
        case notForTopic

        /// For logs and labels.
        public var label: String {
            switch self {
            case .gone: "410"
            case .badDeviceToken: "BadDeviceToken"
            case .notForTopic: "DeviceTokenNotForTopic"
            }
        }
    }

    public enum Answer: Sendable, Equatable {
        case remove
        /// The token is kept. `isFirst` is true once each time the brake engages.
        case withhold(isFirst: Bool)
    }

    private static let slicesMax = 10
    /// The number of newest answers that are judged separately.
    private static let lastMax = 200

    private struct Slice {
        var index: Int64 = .min
        var answers = 0
        var removals: InlineArray<3, Int> = .init(repeating: 0)
    }

    private var limits: Limits
    private var sliceMs: Int64
    private var slices: [Slice]
    /// The newest answers; a nil `cause` means that the token is alive.
    private var last = NewestRing<(atMs: Int64, cause: Cause?)>(capacity: Self.lastMax)
    private var engagedUntilMs: InlineArray<3, Int64> = .init(repeating: .min)

    public init(_ limits: Limits = Limits()) {
        self.limits = limits
        sliceMs = max(1, limits.windowMs / Int64(Self.slicesMax))
        slices = Array(repeating: Slice(), count: Self.slicesMax)
    }

    /// Sets new limits. An engaged cause stays engaged. A different window restarts its counts, except for the newest
    /// answers.
    public mutating func change(_ limits: Limits) {
        if limits.windowMs != self.limits.windowMs {
            sliceMs = max(1, limits.windowMs / Int64(Self.slicesMax))
            slices = Array(repeating: Slice(), count: Self.slicesMax)
        }
        self.limits = limits
    }

    /// APNs answered a push without a reason to remove its token.
    public mutating func answered(nowMs: Int64) {
        slices[slice(nowMs)].answers += 1
        last.append((nowMs, nil))
    }

    /// - Returns: whether the cause reaches its share of the newest answers inside the window.
    private func isSpike(_ cause: Cause, nowMs: Int64) -> Bool {
        let sinceMs = nowMs &- limits.windowMs
        var answers = 0
        var removals = 0
        for answer in last.elements where answer.atMs > sinceMs {
            answers += 1
            if answer.cause == cause { removals += 1 }
        }
        return isEnough(removals, of: answers)
    }

    private func isEnough(_ removals: Int, of answers: Int) -> Bool {
        removals >= max(1, limits.minimum) && Double(removals) >= limits.share * Double(answers)
    }

    /// APNs gave a reason to remove a token.
    public mutating func refused(_ cause: Cause, nowMs: Int64) -> Answer {
        let slice = slice(nowMs)
        slices[slice].answers += 1
        slices[slice].removals[cause.rawValue] += 1
        last.append((nowMs, cause))
        let wasEngaged = isEngaged(cause)
        var answers = 0
        var removals = 0
        let oldest = slices[slice].index &- Int64(Self.slicesMax)
        for slice in slices where slice.index > oldest {
            answers += slice.answers
            removals += slice.removals[cause.rawValue]
        }
        if isEnough(removals, of: answers) || isSpike(cause, nowMs: nowMs) {
            engagedUntilMs[cause.rawValue] = nowMs &+ limits.coolDownMs
        }
        return isEngaged(cause) ? .withhold(isFirst: !wasEngaged) : .remove
    }

    /// Whether removals of this cause are withheld, as of the last `release`.
    public func isEngaged(_ cause: Cause) -> Bool { engagedUntilMs[cause.rawValue] != .min }

    /// Call at intervals. Releases causes with an ended cool-down, and returns them.
    public mutating func release(nowMs: Int64) -> [Cause] {
        var released: [Cause] = []
        for cause in Cause.allCases where isEngaged(cause) && engagedUntilMs[cause.rawValue] <= nowMs {
            engagedUntilMs[cause.rawValue] = .min
            released.append(cause)
        }
        return released
    }

    /// The index of the present slice, cleared if it was last used a window ago.
    private mutating func slice(_ nowMs: Int64) -> Int {
        let index = nowMs / sliceMs
        let place = Int(
            truncatingIfNeeded: ((index % Int64(Self.slicesMax)) + Int64(Self.slicesMax)) % Int64(Self.slicesMax))
        if slices[place].index != index { slices[place] = Slice(index: index) }
        return place
    }
}
