// SPDX-License-Identifier: Apache-2.0
import HTTP2
import JSON
import Simulator
import Testing
import VirtualStage

/// What APNs' misbehaviour costs: nothing where it provably did not process, at most one push too many elsewhere.
@Suite(.onStage(appLines: "    limits: {answer_s: 1, in_flight: 200}\n"))
struct APNsFaultTests {
    private func rule(
        _ action: ScenarioAction, share: Double? = nil, skip: Int = 0, count: Int = .max
    ) -> ScenarioRule {
        var match = ScenarioRule.Match()
        match.share = share
        match.skip = skip
        match.count = count
        return ScenarioRule(match, action)
    }

    private func play(_ crowd: Crowd, _ rules: [ScenarioRule]) throws -> Seen {
        let stage = try Stage.here
        try stage.play(state: crowd.binds)
        stage.apns.set(Scenario(rules: rules, seed: 7))
        defer { stage.apns.set(Scenario()) }
        return try stage.play(events: crowd.messages)
    }

    @Test(arguments: [ScenarioAction.GoAwayLast.none, .before, .this])
    func goAwayInTheMiddleOfABurstCostsNothing(last: ScenarioAction.GoAwayLast) throws {
        let crowd = Crowd(name: "goaway-\(last)", count: 300)
        let seen = try play(
            crowd, [rule(.goAway(last: last, code: .noError, reason: nil), skip: 50, count: 3)])
        crowd.expectOnceEach(seen, "streams above the last id are sent again, the others are not")
        #expect(seen.pushes.contains { $0.fault == "goaway" })
    }

    @Test func refusedStreamsAreSentAgainForFree() throws {
        let crowd = Crowd(name: "refused", count: 300)
        let seen = try play(crowd, [rule(.reset(.refusedStream), share: 0.2)])
        crowd.expectOnceEach(seen, "a fifth of all streams is refused")
        #expect(seen.pushes.count { $0.fault == "refuse_stream" } > 20)
    }

    @Test func temporaryAnswersAreTriedAgain() throws {
        let crowd = Crowd(name: "busy", count: 200)
        let seen = try play(
            crowd,
            [
                rule(.answer(ScenarioAnswer(503, "ServiceUnavailable")), share: 0.3, count: 60),
                rule(.answer(ScenarioAnswer(429, "TooManyRequests")), share: 0.1, count: 10),
                rule(.answer(ScenarioAnswer(500, "InternalServerError")), share: 0.1, count: 10),
            ])
        crowd.expectOnceEach(seen, "503, 429 and 500 for a while")
        #expect(seen.results.contains { ($0["attempts"]?.int ?? 0) > 1 })
    }

    @Test func frozenStreamsAndCutConnectionsAreTriedAgainWithTheSameID() throws {
        let crowd = Crowd(name: "frozen", count: 200)
        let seen = try play(
            crowd, [rule(.freezeStream, skip: 20, count: 5), rule(.close, skip: 100, count: 1)])
        crowd.expectOneResultEach(seen, "each is accepted in the end")
        let accepted = crowd.accepted(seen.pushes)
        #expect(!accepted.contains(0))
        // What was in flight when the connection was cut may have arrived or not: `limits.in_flight` of two shards.
        #expect(accepted.count { $0 > 1 } <= 2 * 200 - 5 && accepted.allSatisfy { $0 <= 2 })
        let frozen = seen.pushes.filter { $0.fault == "freeze" }
        #expect(frozen.count == 5)
        for push in frozen {
            #expect(seen.pushes.contains { $0.apnsID == push.apnsID && $0.status == 200 }, "the same apns-id again")
        }
    }

    @Test func aSimulatorThatRefusesConnectionsIsWaitedFor() throws {
        let stage = try Stage.here
        let crowd = Crowd(name: "closed", count: 200)
        try stage.play(state: crowd.binds)
        let before = stage.takeAPNsDown()
        try stage.writeEvents(crowd.messages)
        try until("/readyz tells of it") {
            let page = try stage.page("/readyz")
            return page.status == 503 && page.text.contains("app im production: down: no connection to APNs: refused")
        }
        #expect(try stage.page("/livez").status == 200)
        stage.bringAPNsUp()
        try stage.settle()
        try until("/readyz is well again") { try stage.page("/readyz").status == 200 }
        var seen = try stage.look()
        seen.pushes = before + seen.pushes
        crowd.expectOnceEach(seen, "what was never sent is sent once")
    }
}
