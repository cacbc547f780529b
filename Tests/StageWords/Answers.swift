// SPDX-License-Identifier: Apache-2.0
package import LocalServers
package import Simulator

/// What the simulator answers goes by the first digits of a token.
package enum TokenPrefix {
    /// 410 with a timestamp long before any bind.
    package static let goneLongAgo = "dead01"
    /// 410 without a timestamp.
    package static let gone = "dead02"
    package static let badToken = "dead03"
    package static let tooLarge = "dead04"
    /// 429 each time: this device is to be left alone.
    package static let busy = "dead05"
    /// Accepted after 2 s.
    package static let slow = "510e"
    /// Accepted after 4 s, the longest that a worker waits for an answer but one: what a test does meanwhile is done before it.
    package static let verySlow = "510e51"

    package static var scenario: Scenario {
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

extension ScenarioAnswer {
    package static var unavailable: ScenarioAnswer { ScenarioAnswer(503, "ServiceUnavailable") }
    package static var tooMany: ScenarioAnswer { ScenarioAnswer(429, "TooManyRequests") }

    /// After so long: to come back later than a push waits in memory.
    package static func putOff(seconds: Int, afterMs: Int64 = 0) -> ScenarioAnswer {
        var answer = ScenarioAnswer.tooMany
        answer.retryAfterSeconds = seconds
        answer.delayMs = afterMs
        return answer
    }

    /// Accepted after so long.
    package static func late(_ delayMs: Int64) -> ScenarioAnswer {
        var answer = ScenarioAnswer()
        answer.delayMs = delayMs
        return answer
    }
}

extension LocalCluster.Settings {
    /// For worlds whose members come and go. When a member joins or leaves, the mock waits one second less than this for the
    /// others to join again; whoever comes later makes it share out once more. A worker needs up to six seconds: one until its
    /// heartbeat tells it, and five for the pushes that are on streams.
    package static let shortSessionMs = 9000

    /// Workers of one shard that come and go: their group waits as short as it may.
    package static var oneShard: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.sessionMs = shortSessionMs
        return settings
    }

    /// Pushes to tokens of `TokenPrefix.slow` get no answer within the time that the worker waits for one.
    package mutating func leaveSlowUnanswered(answerSeconds: Int) {
        answerSlow(afterMs: 600_000, answerSeconds: answerSeconds)
    }

    /// Pushes to tokens of `TokenPrefix.slow` are accepted so late.
    package mutating func answerSlow(afterMs: Int64, answerSeconds: Int) {
        var slow = ScenarioRule.Match()
        slow.tokenPrefix = Array(TokenPrefix.slow.utf8)
        scenario = Scenario(rules: [ScenarioRule(slow, .answer(.late(afterMs)))])
        appLines = "    limits: {answer_s: \(answerSeconds)}\n"
    }
}
