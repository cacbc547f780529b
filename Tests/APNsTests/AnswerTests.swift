import EventLoop
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

    @Test(
        arguments: [
            (400, "BadDeviceToken", .taken), (410, "Unregistered", .taken), (400, "TopicDisallowed", .topic),
            (400, "BadTopic", .topic), (403, "InvalidProviderToken", .credential), (403, "BadCertificate", .credential),
            (403, "ExpiredProviderToken", .credential), (403, "Novel", .credential), (403, "TopicMismatch", .topic),
            (403, "BadCertificateEnvironment", .environment), (403, "BadEnvironmentKeyInToken", .environment),
            (429, "TooManyRequests", .passing), (503, "ServiceUnavailable", .passing), (400, "PayloadEmpty", .other),
            (200, "", .other),
        ] as [(Int, String, ProbeVerdict)])
    func aProbeTellsWhatIsWrongWithTheSender(status: Int, reason: String, verdict: ProbeVerdict) {
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

    @Test func retryAfterIsReadInSecondsOnly() {
        #expect(AnswerBody.retryAfterSeconds("120".utf8) == 120)
        for bad in ["", "-1", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "9999999999"] {
            #expect(AnswerBody.retryAfterSeconds(bad.utf8) == nil, "\(bad)")
        }
    }
}
