// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

/// The same event more than once within one worker.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct RedeliveryTests {
    @Test func aRepeatThatComesLaterWritesAndPushesNothing() throws {
        let stage = try Stage.here
        let line = Line.message("r1-1", to: ["r1"])
        try stage.play(state: [.bind("r1"), .bind("r1", "pad")], events: [line])
        let seen = try stage.play(events: [line, .message("r1-1", to: ["r1"], event: "other")])
        #expect(seen.outcomes(of: "r1-1") == ["r1/pad accepted ok 1", "r1/phone accepted ok 1"])
        #expect(seen.pushes(to: token("r1", "phone")).count == 1)
    }

    @Test func repeatsSideBySideArePushedOnce() throws {
        let stage = try Stage.here
        let slow = token("r2", "phone", TokenPrefix.slow)
        let line = Line.message("r2-1", to: ["r2"])
        let group = Line.message("r3-1", to: ["r3", "r2"], conv: "c-r2")
        let seen = try stage.play(
            state: [.bind("r2", as: slow), .bind("r3")], events: [line, line, group, line, group])
        #expect(seen.outcomes(of: "r2-1") == ["r2/phone accepted ok 1"])
        #expect(seen.outcomes(of: "r3-1") == ["r2/phone accepted ok 2", "r3/phone accepted ok 1"])
        #expect(seen.pushes(to: slow).count == 2)
        #expect(seen.pushes(to: token("r3", "phone")).count == 1)
    }

    @Test func aDevicesPushesGoOneAfterTheOtherWithRisingBadges() throws {
        let stage = try Stage.here
        let slow = token("r4", "phone", TokenPrefix.slow)
        let seen = try stage.play(
            state: [.bind("r4", as: slow)],
            events: (1...3).map { .message("r4-\($0)", to: ["r4"], seq: Int64($0)) })
        let badges = seen.accepted(slow).compactMap { $0.json["aps"]?["badge"]?.int }
        // The number is that of the moment of sending: by then all three were counted.
        #expect(badges.count == 3 && badges.first == 1 && badges.last == 3 && badges == badges.sorted())
    }
}
