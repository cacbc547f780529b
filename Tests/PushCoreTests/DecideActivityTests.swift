// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct DecideActivityTests {
    private static let hourMs: Int64 = 3_600_000

    @Test(arguments: [
        (LiveActivity.Action.update, 8 * hourMs - 1, "phone"), (.update, 8 * hourMs, "activity_over"),
        (.end, 8 * hourMs, "phone"), (.end, 12 * hourMs - 1, "phone"), (.end, 12 * hourMs, "activity_over"),
        (.start, 99 * hourMs, "pad"),
    ])
    func anActivityIsOverEightHoursAfterItsStart(action: LiveActivity.Action, ageMs: Int64, expected: String) {
        #expect(Self.decide(action, startedMs: 1000, now: 1000 + ageMs) == expected)
    }

    @Test(arguments: [
        (LiveActivity.Action.update, 1, "activity_over"), (.end, 1, "phone"), (.end, 12 * hourMs, "activity_over"),
        (.start, 1, "pad"),
    ])
    func afterAnAcceptedEndNoUpdateIsSent(action: LiveActivity.Action, ageMs: Int64, expected: String) {
        #expect(Self.decide(action, startedMs: 1000, isEnded: true, now: 1000 + ageMs) == expected)
        #expect(Self.decide(.update, startedMs: nil, isEnded: true, now: 10) == "activity_over")
    }

    @Test func withoutAKnownStartTheOldestBindCounts() {
        #expect(Self.decide(.update, startedMs: nil, now: 8 * Self.hourMs + 4) == "phone")
        #expect(Self.decide(.update, startedMs: nil, now: 8 * Self.hourMs + 5) == "activity_over")
    }

    @Test func anotherActivitysTokenGetsNothing() {
        #expect(Self.decide(.update, activityID: "other", startedMs: nil, now: 10) == "no_token")
    }

    @Test func anOldRecordIsExpired() {
        let now = 50 * Self.hourMs
        #expect(Self.decide(.start, startedMs: nil, now: now, sentMs: now - 24 * Self.hourMs) == "expired")
        #expect(Self.decide(.start, startedMs: nil, now: now, sentMs: now - 24 * Self.hourMs + 1) == "pad")
        #expect(Self.decide(.start, startedMs: nil, now: now, sentMs: .min) == "expired")
        #expect(Self.decide(.start, startedMs: .min, now: now, sentMs: .max) == "pad")
        #expect(Self.decide(.update, startedMs: .min, now: now) == "activity_over")
    }

    /// Start tokens as `device:type` or `device` → the devices that a start of an activity type goes to.
    @Test(arguments: [
        ("phone pad:Ride", "Ride", "phone pad:Ride"), ("phone phone:Ride", "Ride", "phone:Ride"),
        ("phone phone:Meal", "Ride", "phone"), ("phone:Meal", "Ride", ""), ("phone:Ride pad:Meal", "Meal", "pad:Meal"),
        ("phone phone:Ride", nil, "phone"), ("phone:Ride", nil, ""),
        ("phone:Ride phone:Meal phone", "Ride", "phone:Ride"),
    ])
    func aStartGoesToTheTokensOfItsTypeElseToThoseWithout(tokens: String, type: String?, expected: String) {
        var recipient = Recipient(uid: "me")
        for token in tokens.split(separator: " ") {
            let parts = token.split(separator: ":")
            let record = TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: .start,
                attributesType: parts.count > 1 ? String(parts[1]) : nil, boundMs: 1)
            recipient.tokens.append(BoundToken(device: String(token), record: record, version: 1))
        }
        // A device has one name, whatever token of it is meant.
        recipient.tokens = recipient.tokens.map {
            BoundToken(device: String($0.device.prefix { $0 != ":" }), record: $0.record, version: 1)
        }
        let activity = LiveActivity(
            uids: ["me"], activityID: "a", action: .start, state: .object([]), attributesType: type)
        let decision = PushCore.decide(activity, sentMs: 1, for: recipient, state: ActivityState(), now: 2)
        let used = decision.routes.compactMap { route -> String? in
            guard case .apns(let index, nil) = route.way else { return nil }
            let token = recipient.tokens[index]
            return token.device + (token.record.attributesType.map { ":" + $0 } ?? "")
        }
        #expect(used.joined(separator: " ") == expected)
        #expect(decision.reachesNobody == expected.isEmpty && decision.needsClaim)
    }

    /// The devices that are pushed, or the reason why none is.
    private static func decide(
        _ action: LiveActivity.Action, activityID: String = "a", startedMs: Int64?, isEnded: Bool = false, now: Int64,
        sentMs: Int64? = nil
    ) -> String {
        let activity = LiveActivity(uids: ["me"], activityID: activityID, action: action, state: .object([]))
        var recipient = Recipient(uid: "me")
        func bind(_ device: String, _ type: TokenRecord.Kind, _ id: String?, boundMs: Int64) {
            let record = TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: type, activityID: id, boundMs: boundMs)
            recipient.tokens.append(BoundToken(device: device, record: record, version: 1))
        }
        bind("phone", .alert, nil, boundMs: 1)
        bind("phone", .activity, "a", boundMs: 5)
        bind("phone", .activity, "b", boundMs: 1)
        bind("pad", .start, nil, boundMs: 1)
        let decision = PushCore.decide(
            activity, sentMs: sentMs ?? now, for: recipient,
            state: ActivityState(startedMs: startedMs, isEnded: isEnded), now: now)
        #expect(!decision.counted)
        return decision.finalReason?.rawValue ?? decision.routes.map(\.device).joined(separator: " ")
    }
}
