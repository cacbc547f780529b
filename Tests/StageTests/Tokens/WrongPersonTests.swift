// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// Nobody sees what is not, or no longer, for him.
@Suite(.onStage(scenario: Scenario()))
struct WrongPersonTests {
    /// Contract 5, step 15: sending is the moment when the stream opens, however long the push waited and wherever.
    @Test(arguments: Hindrance.allCases)
    func aPushThatWaitedDoesNotGoToWhoHasThePhoneNow(_ hindrance: Hindrance) throws {
        let (first, second) = ("a-\(hindrance)", "b-\(hindrance)")
        let message = Line.message("\(first)-1", to: [first], push: #""content":"for the first""#)
        try expectUnsent(message, of: first, "token_moved", hindrance) { stage in
            try stage.writeState([.bind(second, as: token(first, "phone"), version: 2)])
        }
    }

    /// Contract 5, step 15: `revoked`, before each further try too.
    @Test(arguments: Hindrance.allCases)
    func aPushThatWaitedDoesNotGoOnceItsMessageIsRevoked(_ hindrance: Hindrance) throws {
        let user = "recalled-\(hindrance)"
        try expectUnsent(.message("\(user)-1", to: [user]), of: user, "revoked", hindrance) { stage in
            try stage.writeEvents([
                .revoke("\(user)-r", of: "\(user)-1", to: user, push: #""enabled":false"#)
            ])
            try until("the revoke has lowered the number") {
                try stage.redisText("ZCARD c:l:{im:\(user)}") == ":0"
            }
        }
    }

    /// Contract 5, step 15: `already_read`, before each further try too.
    @Test(arguments: Hindrance.allCases)
    func aPushThatWaitedDoesNotGoOnceItsMessageIsRead(_ hindrance: Hindrance) throws {
        let user = "read-\(hindrance)"
        let message = Line.message("\(user)-1", to: [user], seq: 1)
        try expectUnsent(message, of: user, "already_read", hindrance) { stage in
            try stage.writeState([.read(user, #""up_to_seq":1"#)])
        }
    }

    private static let activity = #""activity_id":"ride","event":"update","state":{"n":1}"#

    /// Contract 14, "Persons": an account switch without unbind.
    @Test func `a phone that another user logs in on gets nothing more for its former user`() throws {
        let stage = try Stage.here
        try stage.play(state: [
            .bind("left"), .bind("left", type: "voip"), .bind("left", type: "start"),
            .bind("left", type: "activity", #","activity_id":"ride""#), .bind("left", "pad"),
        ])
        try stage.play(state: [.bind("came", "new", as: token("left", "phone"), version: 2, sentMs: nowMs)])
        let seen = try stage.play(events: [
            .message("left-call", to: ["left"], push: #""content":"call","voip":true"#),
            .message("left-1", to: ["left"]),
            .activity("left-a", to: "left", Self.activity), .message("came-1", to: ["came"]),
        ])
        #expect(seen.outcomes(of: "left-call") == ["left suppressed no_token"])
        #expect(seen.outcomes(of: "left-1") == ["left/pad accepted ok 2"], "the call counts too")
        #expect(seen.outcomes(of: "e-left-a") == ["left suppressed no_token"])
        #expect(seen.outcomes(of: "came-1") == ["came/new accepted ok 1"])
    }

    /// Contract 14, "Persons", and 5, step 15.
    @Test(arguments: [Hindrance.away, .unavailable])
    func `a call that waited does not go to the phone of another user`(_ hindrance: Hindrance) throws {
        let stage = try Stage.here
        let (first, second) = ("caller-\(hindrance)", "next-\(hindrance)")
        let voip = Line.usualToken(first, "phone", "voip")
        try stage.play(state: [.bind(first), .bind(first, type: "voip")])
        let message = Line.message("\(first)-1", to: [first], push: #""content":"call","voip":true"#)
        let seen = try hindrance.during(stage) {
            try hindrance.hold([message], token: voip, conv: "c-\(first)", stage)
            try stage.writeState([.bind(second, as: token(first, "phone"), version: 2, sentMs: nowMs)])
            try stage.settleState()
        }
        #expect(seen.accepted(voip).isEmpty)
        #expect(seen.outcomes(of: "\(first)-1").count == 1)
    }

    /// The user's message `<user>-1` waits for APNs; what comes meanwhile stands against it.
    private func expectUnsent(
        _ message: Line, of user: String, _ reason: String, _ hindrance: Hindrance,
        meanwhile: (Stage) throws -> Void
    ) throws {
        let stage = try Stage.here
        let phone = token(user, "phone")
        try stage.play(state: [.bind(user)])
        let seen = try hindrance.during(stage) {
            try hindrance.hold([message], token: phone, conv: "c-\(user)", stage)
            try meanwhile(stage)
            try stage.settleState()
        }
        #expect(seen.accepted(phone).count == 0)
        #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone suppressed \(reason)"])
    }

    /// Contract 5, badge: the number is read at send time.
    @Test(arguments: Hindrance.allCases)
    func aPushThatWaitedCarriesTheNumberOfTheMoment(_ hindrance: Hindrance) throws {
        let stage = try Stage.here
        let user = "number-\(hindrance)"
        let (phone, message) = (token(user, "phone"), "\(user)-2")
        try stage.play(state: [.bind(user)], events: [.message("\(user)-1", to: [user], seq: 1)])
        let seen = try hindrance.during(stage) {
            try hindrance.hold(
                [.message(message, to: [user], seq: 2)], token: phone, conv: "c-\(user)", stage)
            try stage.writeState([.read(user, #""up_to_seq":1"#)])
            try stage.settleState()
        }
        #expect(seen.outcomes(of: message) == ["\(user)/phone accepted ok 1"])
        let pushes = seen.accepted(phone).map { $0.json["aps"]?["badge"]?.int }
        #expect(pushes == [1, 1], "of the first message, which is read, and of the second")
    }

    /// Contract 5, step 15: a token that its own user bound once more is no end.
    @Test(arguments: Hindrance.allCases)
    func waitingPushesGoToTheReboundToken(_ hindrance: Hindrance) throws {
        try rebind("again-\(hindrance)", to: nil, hindrance)
    }

    /// Contract 5, step 15: a token that moved within the user is no end; the decision again, with the new one.
    @Test(arguments: Hindrance.allCases)
    func waitingPushesGoToTheNewTokenOfTheDevice(_ hindrance: Hindrance) throws {
        try rebind("new-\(hindrance)", to: token("new-\(hindrance)", "phone/second"), hindrance)
    }

    /// Contract 5: the records of one conversation leave in their order, also where their token changes meanwhile.
    @Test(arguments: [Hindrance.away, .unavailable])
    func newerPushesStayBehindThoseForTheOldToken(_ hindrance: Hindrance) throws {
        let stage = try Stage.here
        let user = "order-\(hindrance)"
        let new = token(user, "phone/second")
        let messages = (1...4).map { "\(user)-\($0)" }
        try stage.play(state: [.bind(user)])
        let seen = try hindrance.during(stage) {
            try hindrance.hold(
                messages.map { .message($0, to: [user]) }, token: token(user, "phone"), conv: "c-\(user)", stage)
            try stage.writeState([.bind(user, as: new, version: 2, sentMs: nowMs)])
            try stage.settleState()
            try stage.writeEvents([.message("\(user)-5", to: [user])])
        }
        let pushed = seen.accepted(new).compactMap { push in
            (messages + ["\(user)-5"]).first { seen.push(of: $0)?.apnsID == push.apnsID }
        }
        #expect(pushed == messages + ["\(user)-5"])
    }

    private func rebind(_ user: String, to new: String?, _ hindrance: Hindrance) throws {
        let stage = try Stage.here
        let old = token(user, "phone")
        let messages = (1...4).map { "\(user)-\($0)" }
        try stage.play(state: [.bind(user)])
        let seen = try hindrance.during(stage) {
            try hindrance.hold(
                messages.map { .message($0, to: [user]) }, token: old, conv: "c-\(user)", stage)
            try stage.writeState([.bind(user, as: new, version: 2, sentMs: nowMs)])
            try stage.settleState()
        }
        if new != nil { #expect(seen.accepted(old).count == 0, "the old token") }
        #expect(seen.doubled.isEmpty)
        let ends = messages.flatMap { seen.outcomes(of: $0) }
        #expect(
            ends.count == messages.count
                && !ends.contains { $0.contains("token_moved") || $0.contains("coalesced") }, "\(ends)")
        let newest = try #require(messages.last)
        let isPushed = seen.accepted(new ?? old).contains { $0.apnsID == seen.push(of: newest)?.apnsID }
        #expect(isPushed, "\(seen.outcomes(of: newest))")
    }

    /// Contract 5, step 15: a revoked message raises no alert by the long connection either.
    @Test func aMessageThatWasRevokedBeforeItCameRaisesNoAlertOnALiveDevice() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-early"), Gateway.presence("early", "phone", gateway: "gw-early"),
        ])
        try stage.play(
            state: [.bind("early"), .ack("early", "phone", ["early-1", "early-r"])],
            events: [.revoke("early-r", of: "early-1", to: "early")])
        let seen = try stage.play(events: [.message("early-1", to: ["early"], seq: 1)])
        #expect(seen.targets(of: "early-1").allSatisfy { $0["alert"]?.bool == false })
        #expect(seen.pushes(to: token("early", "phone")).count == 0)
        #expect(seen.outcomes(of: "early-1").count == 1)
    }
}
