// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct AnswerTests {
    struct Row: Sendable {
        let body: String
        let reason: String
        let time: AnswerTime
    }

    @Test(arguments: [
        Row(body: #"{"reason":"BadDeviceToken"}"#, reason: "BadDeviceToken", time: .absent),
        Row(
            body: #"{"reason":"Unregistered","timestamp":1700000000123}"#, reason: "Unregistered",
            time: .ms(1_700_000_000_123)),
        Row(
            body: #" { "timestamp" : 5 , "x" : {"reason":"no",",":[1,"]"]} , "reason" : "ExpiredToken" } "#,
            reason: "ExpiredToken", time: .ms(5)),
        Row(body: #"{"reason":"Novel"}"#, reason: "Novel", time: .absent),
        Row(body: #"{"reason":null,"timestamp":"1"}"#, reason: "", time: .unreadable),
        Row(body: #"{"timestamp":99999999999999999999,"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":1700000000123.5,"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":1.7e12,"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":-5,"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":[5],"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":true,"reason":"A"}"#, reason: "A", time: .unreadable),
        Row(body: #"{"timestamp":"now"#, reason: "", time: .unreadable),
        Row(body: #"{"timestamp":null,"reason":"A"}"#, reason: "A", time: .absent),
        Row(body: #"{"timestamp":"x","reason":"A","timestamp":7}"#, reason: "A", time: .ms(7)),
        Row(body: "", reason: "", time: .absent),
        Row(body: "<html>", reason: "", time: .absent),
        Row(body: #"{"reason":"cut"#, reason: "", time: .absent),
        Row(body: #"{"reason":"a\"#, reason: "", time: .absent),
        Row(body: "{{{{", reason: "", time: .absent),
        Row(body: "[\"reason\"]", reason: "", time: .absent),
    ])
    func bodiesGiveReasonAndTimestamp(row: Row) {
        let body = AnswerBody(row.body.utf8)
        #expect(body.reason.text == row.reason, "\(row.body)")
        #expect(body.time == row.time, "\(row.body)")
    }

    @Test(
        arguments: [
            (400, "BadDeviceToken", .taken), (410, "Unregistered", .taken), (400, "TopicDisallowed", .topic),
            (400, "BadTopic", .topic), (403, "InvalidProviderToken", .credential), (403, "BadCertificate", .credential),
            (403, "ExpiredProviderToken", .credential), (403, "Novel", .credential), (403, "TopicMismatch", .topic),
            (403, "BadCertificateEnvironment", .environment), (403, "BadEnvironmentKeyInToken", .environment),
            (429, "TooManyRequests", .passing), (503, "ServiceUnavailable", .passing), (400, "PayloadEmpty", .other),
            (200, "", .other),
        ] as [(Int, String, ProbeVerdict)])
    func aProbeNamesTheSendersFault(status: Int, reason: String, verdict: ProbeVerdict) {
        #expect(ProbeVerdict(status: status, reason: APNsReason(bytes: reason.utf8)) == verdict)
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

    /// The rule sheet once more, in its own words: status, reason, then what becomes of push, connection, credential,
    /// pace and token; `!` where an operator has to look. `-` is no reason or no step.
    static let sheet = """
        200 - accept - - - -
        400 BadDeviceToken reject - - - remove
        400 DeviceTokenNotForTopic reject - - - remove
        400 BadCollapseId reject - - - - !
        400 BadExpirationDate reject - - - - !
        400 BadMessageId reject - - - - !
        400 BadPriority reject - - - - !
        400 BadTopic reject - - - - !
        400 DuplicateHeaders reject - - - - !
        400 IdleTimeout resend drain - - -
        400 InvalidPushType reject - - - - !
        400 MissingDeviceToken reject - - - - !
        400 MissingTopic reject - - - - !
        400 PayloadEmpty reject - - - - !
        400 TopicDisallowed reject - - - - !
        400 Novel reject - - - -
        400 - reject - - - -
        403 BadCertificate awaitCredential drain pause - -
        403 BadCertificateEnvironment awaitCredential drain pause - -
        403 BadEnvironmentKeyIdInToken awaitCredential drain pause - -
        403 BadEnvironmentKeyInToken awaitCredential drain pause - -
        403 ExpiredProviderToken awaitCredential drain resign - -
        403 Forbidden awaitCredential - pause - -
        403 InvalidProviderToken awaitCredential drain pause - -
        403 MissingProviderToken awaitCredential drain pause - -
        403 UnrelatedKeyIdInToken awaitCredential drain pauseIfFresh - -
        403 TopicMismatch reject - - - - !
        403 FeatureNotEnabled reject - - - - !
        403 Novel awaitCredential drain pause - -
        404 BadPath reject - - - - !
        405 MethodNotAllowed reject - - - - !
        410 Unregistered reject - - - removeIfOlder
        410 ExpiredToken reject - - - removeIfOlder
        410 - reject - - - removeIfOlder
        413 PayloadTooLarge reject - - - - !
        429 TooManyRequests retry - - token -
        429 TooManyProviderTokenUpdates retry drain holdSigning - -
        429 Novel retry - - token -
        500 InternalServerError retry - - - -
        502 - retry - - - -
        503 ServiceUnavailable retry - - endpoint -
        503 Shutdown resend drain - - -
        503 - retry - - endpoint -
        400 BadChannelId reject - - - -
        400 ChannelNotRegistered reject - - - -
        400 MissingChannelId reject - - - - !
        400 BadRequestParams reject - - - - !
        500 BadDeviceToken retry - - - -
        301 - reject - - - -
        599 - retry - - - -
        """

    @Test(arguments: sheet.split(separator: "\n").map(String.init))
    func everyAnswerHasItsAction(line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let status = try #require(Int(words[0]))
        let reason = words[1] == "-" ? APNsReason.absent : APNsReason(bytes: words[1].utf8)
        let rule = AnswerTable.rule(status: status, reason: reason)
        func word(_ step: some Equatable, _ none: some Equatable) -> String {
            "\(step)" == "\(none)" ? "-" : "\(step)"
        }
        #expect("\(rule.push)" == words[2])
        #expect(word(rule.connection, AnswerRule.ConnectionStep.keep) == words[3])
        #expect(word(rule.credential, AnswerRule.CredentialStep.keep) == words[4])
        #expect(word(rule.pace, AnswerRule.PaceStep.keep) == words[5])
        #expect(word(rule.token, AnswerRule.TokenFate.keep) == words[6])
        #expect(rule.needsOperator == (words.last == "!"))
    }

    @Test func tableHasNoRowTwice() {
        let keys = AnswerTable.rules.map { "\($0.status) \($0.reason)" }
        #expect(Set(keys).count == keys.count)
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    private static let then: Int64 = 784_111_777

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ]) func aDateOfHTTPIsReadInEachOfItsForms(text: String) {
        #expect(HTTPDate.seconds(text.utf8, nowSeconds: Self.then) == Self.then)
        for ahead in [1, 60, 3600] as [Int64] {
            let nowMs = (Self.then - ahead) * 1000
            #expect(RetryAfter.seconds(text.utf8, date: nil, nowMs: nowMs) == UInt32(ahead))
            // The peer's clock counts where the answer says it, not ours.
            #expect(RetryAfter.seconds(text.utf8, date: Self.then - ahead, nowMs: 0) == UInt32(ahead))
        }
        #expect(RetryAfter.seconds(text.utf8, date: nil, nowMs: Self.then * 1000 - 1) == 1)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ]) func aPastDateAsksForNoWait(text: String) {
        for past in [0, 1, 86_400] as [Int64] {
            #expect(RetryAfter.seconds(text.utf8, date: nil, nowMs: (Self.then + past) * 1000) == nil)
        }
    }

    @Test func aYearOfTwoDigitsIsTheNearest() {
        // 2026-01-01.
        let now: Int64 = 1_767_225_600
        #expect(HTTPDate.seconds("Thursday, 01-Jan-26 00:00:00 GMT".utf8, nowSeconds: now) == now)
        #expect(HTTPDate.seconds("Wednesday, 01-Jan-76 00:00:00 GMT".utf8, nowSeconds: now) == 3_345_062_400)
        #expect(HTTPDate.seconds("Saturday, 01-Jan-77 00:00:00 GMT".utf8, nowSeconds: now) == 220_924_800)
    }

    @Test func retryAfterIsSecondsOrADateAndNothingElse() {
        func seconds(_ text: String) -> UInt32? { RetryAfter.seconds(text.utf8, date: nil, nowMs: 0) }
        #expect(seconds("120") == 120 && seconds("0") == 0 && seconds("99999999999999999999") == .max)
        for bad in [
            "", "-1", "1.5", " 1", "1 ", "1e3", "soon", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 2094 08:49:37 GMT", "Sun, 06 Nov 2094 24:00:00 GMT", "Sun, 6 Nov 2094 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT", "Xxx, 06 Nov 2094 08:49:37 GMT", "Sun, 06 Nov 2094 08:49:37 GMT ",
            "Sun, 00 Nov 2094 08:49:37 GMT", "Sun Nov 6 08:49:37 2094", "Sun  Nov 06 08:49:37 2094",
            "Sunday, 06-Nov-2094 08:49:37 GMT", "2094-11-06T08:49:37Z", String(repeating: "9", count: 41),
        ] {
            #expect(seconds(bad) == nil, "\(bad)")
        }
    }
}
