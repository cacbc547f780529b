import Testing

@testable import APNs

@Suite struct AnswerTests {
    struct Row: Sendable {
        let body: String
        let reason: String
        let timestamp: Int64?
    }

    @Test(arguments: [
        Row(body: #"{"reason":"BadDeviceToken"}"#, reason: "BadDeviceToken", timestamp: nil),
        Row(
            body: #"{"reason":"Unregistered","timestamp":1700000000123}"#, reason: "Unregistered",
            timestamp: 1_700_000_000_123),
        Row(
            body: #" { "timestamp" : 5 , "x" : {"reason":"no",",":[1,"]"]} , "reason" : "ExpiredToken" } "#,
            reason: "ExpiredToken", timestamp: 5),
        Row(body: #"{"reason":"Novel"}"#, reason: "Novel", timestamp: nil),
        Row(body: #"{"reason":null,"timestamp":"1"}"#, reason: "", timestamp: nil),
        Row(body: #"{"timestamp":99999999999999999999,"reason":"A"}"#, reason: "A", timestamp: nil),
        Row(body: "", reason: "", timestamp: nil),
        Row(body: "<html>", reason: "", timestamp: nil),
        Row(body: #"{"reason":"cut"#, reason: "", timestamp: nil),
        Row(body: #"{"reason":"a\"#, reason: "", timestamp: nil),
        Row(body: "{{{{", reason: "", timestamp: nil),
        Row(body: "[\"reason\"]", reason: "", timestamp: nil),
    ])
    func bodiesGiveReasonAndTimestamp(row: Row) {
        let body = AnswerBody(row.body.utf8)
        #expect(body.reason.text == row.reason, "\(row.body)")
        #expect(body.timestampMs == row.timestamp, "\(row.body)")
    }

    @Test func noiseNeverTraps() {
        var random = SmallRandom(seed: 42)
        let alphabet = Array(#"{}[]":,\ reason timestamp 0189 null"#.utf8)
        for _ in 0..<4_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            _ = AnswerBody(bytes)
        }
    }

    @Test func unknownReasonsAreKeptButGiveNoLabel() {
        let reason = APNsReason(bytes: "Brand\nNew".utf8)
        #expect(reason.text == "Brand?New")
        #expect(reason.label == "other")
        #expect(APNsReason(bytes: "Shutdown".utf8).label == "Shutdown")
    }

    struct Action: Sendable {
        let status: Int
        let reason: String
        let push: AnswerRule.PushStep
        let credential: AnswerRule.CredentialStep
        let token: AnswerRule.TokenFate
    }

    @Test(arguments: [
        Action(status: 200, reason: "", push: .accept, credential: .keep, token: .keep),
        Action(status: 400, reason: "BadDeviceToken", push: .reject, credential: .keep, token: .remove),
        Action(status: 400, reason: "DeviceTokenNotForTopic", push: .reject, credential: .keep, token: .remove),
        Action(status: 400, reason: "BadTopic", push: .reject, credential: .keep, token: .keep),
        Action(status: 400, reason: "Never Seen", push: .reject, credential: .keep, token: .keep),
        Action(status: 400, reason: "IdleTimeout", push: .resend, credential: .keep, token: .keep),
        Action(status: 403, reason: "ExpiredProviderToken", push: .awaitCredential, credential: .resign, token: .keep),
        Action(status: 403, reason: "InvalidProviderToken", push: .awaitCredential, credential: .pause, token: .keep),
        Action(status: 403, reason: "Brand", push: .awaitCredential, credential: .pause, token: .keep),
        Action(status: 404, reason: "BadPath", push: .reject, credential: .keep, token: .keep),
        Action(status: 410, reason: "Unregistered", push: .reject, credential: .keep, token: .removeIfOlder),
        Action(status: 410, reason: "", push: .reject, credential: .keep, token: .removeIfOlder),
        Action(status: 413, reason: "PayloadTooLarge", push: .reject, credential: .keep, token: .keep),
        Action(status: 429, reason: "TooManyRequests", push: .retry, credential: .keep, token: .keep),
        Action(
            status: 429, reason: "TooManyProviderTokenUpdates", push: .retry, credential: .holdSigning, token: .keep),
        Action(status: 500, reason: "InternalServerError", push: .retry, credential: .keep, token: .keep),
        Action(status: 502, reason: "", push: .retry, credential: .keep, token: .keep),
        Action(status: 503, reason: "Shutdown", push: .resend, credential: .keep, token: .keep),
        // A known word under a foreign status acts by the status.
        Action(status: 500, reason: "BadDeviceToken", push: .retry, credential: .keep, token: .keep),
        Action(status: 301, reason: "", push: .reject, credential: .keep, token: .keep),
    ])
    func everyAnswerHasItsAction(row: Action) {
        let rule = AnswerTable.rule(status: row.status, reason: APNsReason(bytes: row.reason.utf8))
        #expect(rule.push == row.push, "\(row)")
        #expect(rule.credential == row.credential, "\(row)")
        #expect(rule.token == row.token, "\(row)")
    }

    @Test func tableHasNoRowTwice() {
        let keys = AnswerTable.rules.map { "\($0.status) \($0.reason)" }
        #expect(Set(keys).count == keys.count)
    }

    @Test func retryAfterIsReadInSecondsOnly() {
        #expect(AnswerBody.retryAfterSeconds("120".utf8) == 120)
        for bad in ["", "-1", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "9999999999"] {
            #expect(AnswerBody.retryAfterSeconds(bad.utf8) == nil, "\(bad)")
        }
    }
}
