// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import APNs
@testable import Worker

/// Strategy 4: whether there is a copy after the push, and whether it alerts.
struct DeviceRulesTests {
    private static let id = PushID.make(app: "im", uid: "u", msgID: "m", kind: "m", tokenHex: "00")

    private static let outcomes: [(PushOutcome, Bool?)] = [
        (.accepted(apnsID: id), false),
        (.rejected(status: 413, reason: APNsReason(known: "PayloadTooLarge"), time: .absent), true),
        (.expired, nil),
        (.deferred(status: 429, reason: APNsReason(known: "TooManyRequests"), retryAfterMs: 5), true),
        (.superseded, false), (.unprocessed(.notSent), true), (.unknown(.timeout, apnsID: id), false),
    ]

    @Test(arguments: outcomes)
    func theCopyAlertsWhereThePushProvablyDidNot(outcome: PushOutcome, alerts: Bool?) {
        let mayAlert = Route.Way.apns(token: 0, copyTo: .init(presence: 0, mayAlert: true))
        #expect(mayAlert.copyAlert(outcome.alertsByCopy) == alerts)
        let silent = Route.Way.apns(token: 0, copyTo: .init(presence: 0, mayAlert: false))
        #expect(silent.copyAlert(outcome.alertsByCopy) == alerts.map { _ in false })
        #expect(Route.Way.apns(token: 0, copyTo: nil).copyAlert(outcome.alertsByCopy) == nil)
    }

    @Test(arguments: [(Reason.expired, Bool?.none), (.alreadyRead, false), (.revoked, false), (.tokenMoved, true)])
    func theCopyOfWhatWasNotSentGoesByItsReason(reason: Reason, alerts: Bool?) {
        let way = Route.Way.apns(token: 0, copyTo: .init(presence: 0, mayAlert: true))
        #expect(way.copyAlert(reason.alertsByCopy) == alerts)
    }
}
