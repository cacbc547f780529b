import Simulator
import Testing

/// Cases that share one world: each has users, conversations and messages of its own.
@Suite(.serialized, .inWorld(scenario: TokenPrefix.scenario))
struct OneWorld {}

/// What the simulator answers goes by the first digits of a token.
enum TokenPrefix {
    /// 410 with a timestamp long before any bind.
    static let goneLongAgo = "dead01"
    /// 410 without a timestamp.
    static let gone = "dead02"
    static let badToken = "dead03"
    static let tooLarge = "dead04"
    /// 429 each time: this device is to be left alone.
    static let busy = "dead05"
    /// Accepted after 2 s.
    static let slow = "510e"
    /// Accepted after 4 s, the longest that a worker waits for an answer but one: what a test does meanwhile is done before it.
    static let verySlow = "510e51"

    static var scenario: Scenario {
        func rule(_ prefix: String, _ action: ScenarioAction) -> ScenarioRule {
            var match = ScenarioRule.Match()
            match.tokenPrefix = Array(prefix.utf8)
            return ScenarioRule(match, action)
        }
        return Scenario(rules: [
            rule(goneLongAgo, .answer(ScenarioAnswer(410, "Unregistered", timestampMs: 1_000_000))),
            rule(gone, .answer(ScenarioAnswer(410, "ExpiredToken"))),
            rule(badToken, .answer(ScenarioAnswer(400, "BadDeviceToken"))),
            rule(tooLarge, .answer(ScenarioAnswer(413, "PayloadTooLarge"))),
            rule(busy, .answer(ScenarioAnswer(429, "TooManyRequests"))),
            rule(verySlow, .answer(.late(4000))),
            rule(slow, .answer(.late(2000))),
        ])
    }
}
