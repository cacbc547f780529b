// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Simulator

/// A short life of one user of the app `kit`, whom nothing else of the world touches. So the contract gives one end,
/// and each claim about it is exact.
struct Episode: Sendable {
    let name: String
    /// Whether the app's settings, and the boundary of the world's minute, allow it.
    var fits: @Sendable (AppSettings, _ boundarySeconds: Int) -> Bool = { _, _ in true }
    let play: @Sendable (Cast) -> Void

    init(
        _ name: String, if fits: @escaping @Sendable (AppSettings, Int) -> Bool = { _, _ in true },
        _ play: @escaping @Sendable (Cast) -> Void
    ) {
        self.name = name
        self.fits = fits
        self.play = play
    }

    /// Whether it fits an app with the usual settings. The others come first where they fit, because few apps have theirs.
    var isUsual: Bool { fits(AppSettings(id: Self.app), 0) }

    /// Whether it needs an app that merges alerts.
    var isOfBursts: Bool {
        !isUsual && fits(Self.bursting, 0)
    }

    private static var bursting: AppSettings {
        var settings = AppSettings(id: Self.app)
        settings.burstTenths = 20
        return settings
    }

    /// The id of the app that only episodes use.
    static let app = "kit"

    static let all: [Episode] =
        tokenEpisodes + badgeEpisodes + decisionEpisodes + textEpisodes + answerEpisodes + connectionEpisodes
        + recordEpisodes + laterEpisodes

    /// A statement of an episode about its end.
    enum Claim {
        /// The outcomes of a recipient by device; without a device by an empty name.
        case ends(SentNote, uid: String, [String: String])
        /// So many requests with that token were accepted.
        case accepted(SentNote, token: String, Int)
        /// The number of unread messages after this one, as the app's settings show it. Nil: the alert has none.
        case counts(SentNote, device: String, Int64?)
        /// The numbers of these messages, of which the first is the first unread one, never fall. Each includes its own message, and may
        /// include later ones: it is read when the push is sent.
        case rises([SentNote], device: String)
        /// A member of the payload; nil: it is not there.
        case has(SentNote, device: String, path: String, JudgeJSON?)
        /// A custom key at the place that the profile has for it.
        case custom(SentNote, device: String, key: String, JudgeJSON?)
        case header(SentNote, device: String, String)
        /// Seconds from the event to the first request, or to its end if that is `isEnd`.
        case came(SentNote, device: String, ClosedRange<Double>)
        case attempts(SentNote, device: String, Int64)
        case result(SentNote, String)
        case delivery(SentNote, device: String, alerts: Bool?)
        case sms(SentNote, phone: String?, reason: String?, body: String?)
        case feedback(token: String, Bool)
        /// So many of the tokens are removed.
        case feedbacks([String], ClosedRange<Int>)
        /// The error of a dead letter contains these words.
        case deadLetter(SentNote, String)
        /// The last request with that token carries this number alone, and comes after the change.
        case shows(token: String, Int64, after: SentNote)
        /// The requests of these came one after the other, so many seconds apart at least.
        case apart([SentNote], token: String, Double)
        /// Requests reached APNs in this order.
        case order([SentNote], token: String)
        /// A digest says that it is about so many messages.
        case digest(token: String, Int)
        /// Both have one collapse id.
        case sameCollapse(SentNote, SentNote)
        case credential(SentNote, device: String, String)
        /// So many requests to a broadcast channel were accepted.
        case broadcasts(channel: String, Int)
    }

    /// Answers of APNs by the beginning of a token.
    enum Token: String, CaseIterable {
        case plain = "e000"
        case waits2s = "e001"
        case fails500 = "e002"
        case goneLater = "e003"
        case goneBefore = "e004"
        case gone = "e005"
        case bad = "e006"
        case notForTopic = "e007"
        case tooLarge = "e008"
        case strange = "e009"
        case silentOnce = "e00a"
        case silent = "e00b"
        case slow = "e00c"
        case refusedOnce = "e00d"
        case waits = "e00e"
        case waits12s = "e00f"
        case unavailable = "e010"
        case expiredToken = "e011"
        case tooOld = "e012"
        case waitsUntil = "e013"
        case forbidden = "e014"
    }

    /// The rules at APNs. They hold for the whole world.
    static func answers(originMs: Int64) -> [ScenarioRule] {
        func rule(_ token: Token, _ action: ScenarioAction, count: Int = .max) -> ScenarioRule {
            var match = ScenarioRule.Match()
            match.tokenPrefix = Array(token.rawValue.utf8)
            match.count = count
            return ScenarioRule(match, action)
        }
        func again(_ status: Int, _ reason: String, _ seconds: Int?) -> ScenarioAction {
            var answer = ScenarioAnswer(status, reason)
            answer.retryAfterSeconds = seconds
            return .answer(answer)
        }
        var late = ScenarioAnswer()
        late.delayMs = slowMs
        var dated = ScenarioAnswer(429, "TooManyRequests")
        (dated.retryAfterSeconds, dated.retryAfterIsDate) = (5, true)
        return [
            rule(.waits2s, again(429, "TooManyRequests", 2), count: 1),
            rule(.waitsUntil, .answer(dated), count: 1),
            rule(.forbidden, again(403, "InvalidProviderToken", nil), count: 1),
            rule(.waits, again(429, "TooManyRequests", nil), count: 1),
            rule(.waits12s, again(429, "TooManyRequests", 12), count: 1),
            rule(.tooOld, again(403, "ExpiredProviderToken", nil), count: 1),
            rule(.fails500, again(500, "InternalServerError", nil), count: 1),
            rule(.unavailable, again(503, "ServiceUnavailable", nil), count: 1),
            rule(.goneLater, .answer(ScenarioAnswer(410, "Unregistered", timestampMs: originMs + 3_600_000))),
            rule(.goneBefore, .answer(ScenarioAnswer(410, "Unregistered", timestampMs: originMs - 86_400_000))),
            rule(.gone, .answer(ScenarioAnswer(410, "Unregistered"))),
            rule(.expiredToken, .answer(ScenarioAnswer(410, "ExpiredToken", timestampMs: originMs + 3_600_000))),
            rule(.bad, .answer(ScenarioAnswer(400, "BadDeviceToken"))),
            rule(.notForTopic, .answer(ScenarioAnswer(400, "DeviceTokenNotForTopic"))),
            rule(.tooLarge, .answer(ScenarioAnswer(413, "PayloadTooLarge"))),
            rule(.strange, .answer(ScenarioAnswer(400, "BadCollapseId"))),
            rule(.silentOnce, .freezeStream, count: 1),
            rule(.silent, .freezeStream),
            rule(.slow, .answer(late)),
            rule(.refusedOnce, .reset(.refusedStream), count: 1),
        ]
    }

    /// How long the answer to a slow token takes.
    static let slowMs: Int64 = 1500
}

/// A record that an episode wrote. Its ids and time are known once it is written.
///
/// Unchecked: it is written while its world runs, in one thread, and only read after that.
final class SentNote: @unchecked Sendable {
    var eventID = ""
    var messageID = ""
    var conversation = ""
    var atNanos: UInt64 = 0
    /// The world's clock.
    var writtenMs: Int64 = 0
}
