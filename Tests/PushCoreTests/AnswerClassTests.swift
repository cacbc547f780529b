import PushCore
import Testing

@Suite struct AnswerClassTests {
    @Test(arguments: [
        (200, String?.none, AnswerClass.accepted),
        (400, "BadDeviceToken", .removeToken),
        (400, "DeviceTokenNotForTopic", .removeToken),
        (400, "BadTopic", .rejected),
        (400, "IdleTimeout", .retry),
        (400, nil, .rejected),
        (403, "ExpiredProviderToken", .signAgain),
        (403, "InvalidProviderToken", .pauseCredential),
        (403, nil, .pauseCredential),
        (404, "BadPath", .rejected),
        (405, "MethodNotAllowed", .rejected),
        (413, "PayloadTooLarge", .rejected),
        (429, "TooManyRequests", .retry),
        (500, "InternalServerError", .retry),
        (503, "Shutdown", .retry),
        (599, nil, .retry),
        (418, "Teapot", .rejected),
        (0, nil, .rejected),
    ])
    func followsFromStatusAndReason(status: Int, reason: String?, expected: AnswerClass) {
        #expect(AnswerClass(status: status, reason: reason, timestampMs: nil, boundMs: 5) == expected)
    }

    @Test(arguments: [(Int64?.none, AnswerClass.removeToken), (6, .removeToken), (5, .rejected), (4, .rejected)])
    func a410IsAboutTheTokenAsItWasThen(timestampMs: Int64?, expected: AnswerClass) {
        #expect(AnswerClass(status: 410, reason: "Unregistered", timestampMs: timestampMs, boundMs: 5) == expected)
    }
}
