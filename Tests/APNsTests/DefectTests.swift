// SPDX-License-Identifier: Apache-2.0
import HTTP2
import Simulator
import Support
import Testing

@testable import APNs

/// Defects that other clients have or had, each as a scenario that ours has to pass.
@Suite(.serialized, .timeLimit(.minutes(10))) struct DefectTests {
    private static var patient: APNsLimits {
        var limits = World.quick
        limits.unknownTries = 20
        return limits
    }

    /// Sends `count` pushes under a scenario and expects each accepted, told once.
    private func expectAllAccepted(
        _ scenario: String, count: UInt64 = 300, limits: APNsLimits = patient,
        _ more: (World, SimulatorService) async throws -> Void = { _, _ in }
    ) async throws {
        try await withSimulator(scenario: scenario, limits: limits) { loop, world, simulator in
            await loop.run { _ in world.send(1...count) }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes.count == Int(count) && world.acceptedCount == Int(count))
                #expect(world.doubles == 0)
            }
            try await more(world, simulator)
        }
    }

    /// aioapns never ended a push whose stream was reset.
    @Test(arguments: 0...13) func aStreamResetByAnyCodeEndsItsPush(code: Int) async throws {
        let scenario =
            #"{"rules": [{"match": {"every": 5, "count": 20}, "fault": {"kind": "reset", "code": \#(code)}}]}"#
        try await expectAllAccepted(scenario, count: 120) { _, simulator in
            let faults = await simulator.counters.faults
            #expect(faults[code == 7 ? "refuse_stream" : "reset"] == 20)
        }
    }

    /// aioapns never gave the window of error bodies back: after 64 KB a connection was dumb.
    @Test func errorBodiesDoNotEatTheWindow() async throws {
        let answer = #"{"status": 400, "reason": "BadCollapseId", "body_bytes": 1500}"#
        try await withSimulator(scenario: #"{"rules": [{"answer": \#(answer)}]}"#) { loop, world, simulator in
            await loop.run { _ in world.send(1...2_000) }
            try await world.allDone()
            await loop.run { _ in
                let expected = PushOutcome.rejected(
                    status: 400, reason: APNsReason(known: "BadCollapseId"), time: .absent)
                #expect(world.outcomes.values.allSatisfy { $0 == expected } && world.doubles == 0)
            }
        }
    }

    /// aioapns signed one token per connection; Apple counts them.
    @Test func allConnectionsShowOneToken() async throws {
        var limits = Self.patient
        limits.connectionsMin = 4
        limits.connectionsMax = 4
        try await expectAllAccepted(
            #"{"connection": {"streams": 2, "token_throttle": {"scope": "key"}}}"#, limits: limits
        ) { _, simulator in
            let counters = await simulator.counters
            #expect(counters.tokens == 1 && counters.connections >= 2)
        }
    }

    /// aioapns resent what APNs may have accepted; pushy handed it to the caller; pigeon forgot it.
    @Test func goAwayInABurstDoublesNothing() async throws {
        let fault = #"{"kind": "goaway", "last": "this", "twice": true, "reason": "Shutdown"}"#
        let scenario = #"{"rules": [{"match": {"every": 150}, "fault": \#(fault)}]}"#
        try await expectAllAccepted(scenario, count: 900) { world, simulator in
            let accepted = await simulator.entries.filter { $0.status == 200 }
            #expect(accepted.count == 900 && Set(accepted.map(\.token)).count == 900)
            #expect(await simulator.counters.connections >= 4)
        }
    }

    /// AsyncHTTPClient left requests hanging after a GOAWAY with an error.
    @Test(arguments: ["PROTOCOL_ERROR", "INTERNAL_ERROR", "ENHANCE_YOUR_CALM"])
    func errorGoAwayLeavesNothingHanging(code: String) async throws {
        try await expectAllAccepted(
            #"{"rules": [{"match": {"every": 40, "count": 3}, "fault": {"kind": "goaway", "code": "\#(code)"}}]}"#)
    }

    /// pigeon crashed on the push after the last stream; others assume 1000 streams before SETTINGS came.
    @Test func burstAboveTheStreamLimitWaits() async throws {
        try await expectAllAccepted(#"{"connection": {"streams": 100}}"#, count: 1_001) { _, simulator in
            #expect(await simulator.counters.streamsPeak <= 100)
        }
    }

    /// pigeon read the last DATA frame of an answer alone; it and gorush dropped the time of a 410.
    @Test(arguments: [1, 7, 30]) func answerInPiecesIsReadWhole(bytes: Int) async throws {
        let answer = #"{"status": 410, "reason": "Unregistered", "timestamp": 1700000000000, "split_bytes": \#(bytes)}"#
        try await withSimulator(scenario: #"{"rules": [{"answer": \#(answer)}]}"#) { loop, world, _ in
            await loop.run { _ in world.send(1...20) }
            try await world.allDone()
            await loop.run { _ in
                let expected = PushOutcome.rejected(
                    status: 410, reason: APNsReason(known: "Unregistered"), time: .ms(1_700_000_000_000))
                #expect(world.outcomes.values.allSatisfy { $0 == expected })
            }
        }
    }

    /// APNSwift waits for ever on a server that is silent.
    @Test func frozenServerIsLeft() async throws {
        var limits = Self.patient
        limits.pingAfterNanos = 100_000_000
        limits.pingTimeoutNanos = 300_000_000
        let scenario = #"{"rules": [{"match": {"skip": 20, "count": 1}, "fault": {"kind": "freeze"}}]}"#
        try await expectAllAccepted(scenario, limits: limits)
    }

    /// a2 and a row of closed enumerations lost reasons that Apple added later.
    @Test func unknownReasonIsPassedOn() async throws {
        let scenario = #"{"rules": [{"answer": {"status": 400, "reason": "NotOfThisWorld"}}]}"#
        try await withSimulator(scenario: scenario) { loop, world, _ in
            await loop.run { _ in world.send(1...5) }
            try await world.allDone()
            await loop.run { _ in
                for outcome in world.outcomes.values {
                    guard case .rejected(400, let reason, .absent) = outcome else {
                        Issue.record("\(outcome)")
                        continue
                    }
                    #expect(reason.text == "NotOfThisWorld")
                }
            }
        }
    }

    /// apns2 cannot send an expiration of 0; pushy sends it where none was asked for.
    @Test func expirationIsSentAsGivenOrNotAtAll() async throws {
        try await withSimulator { loop, world, simulator in
            try await loop.run { _ in
                for (tag, expiration) in [(1, 0), (2, nil)] as [(UInt64, Int64?)] {
                    let model = world.push(tag)
                    let headers = try PushHeaders(
                        topic: "com.example.im", pushType: .alert, expirationSeconds: expiration)
                    let push = Push(
                        tag: tag, token: model.token, headers: headers, id: model.id, payload: model.payload)
                    world.expected += 1
                    #expect(world.client.send(push) == .taken)
                }
            }
            try await world.allDone()
            let sent = await simulator.entries.reduce(into: [:]) { $0[$1.token.last] = $1.headers["apns-expiration"] }
            #expect(sent == ["1": "0"])
        }
    }

    /// gorush repeats a 5xx at once and a 429 never.
    @Test func aServerInTroubleIsAskedAgainLater() async throws {
        let answers = [(503, "ServiceUnavailable"), (429, "TooManyRequests"), (500, "InternalServerError")].map {
            #"{"match": {"every": 4, "count": 15}, "answer": {"status": \#($0.0), "reason": "\#($0.1)"}}"#
        }
        try await expectAllAccepted(#"{"rules": [\#(answers.joined(separator: ","))]}"#, count: 150) { _, simulator in
            let rejected = await simulator.counters.rejected
            #expect(rejected["ServiceUnavailable"] == 15 && rejected["TooManyRequests"] == 15)
        }
    }

    /// pushy has no result for an error whose HEADERS end the stream.
    @Test func errorWithoutABodyIsAnAnswer() async throws {
        let scenario = #"""
            {"rules": [{"match": {"every": 5, "count": 10}, "answer": {"status": 503, "body": ""}},
                       {"match": {"token": "00000000000000000000000000000000000000000000000000000000000000"},
                        "answer": {"status": 400, "body": ""}}]}
            """#
        try await withSimulator(scenario: scenario, limits: Self.patient) { loop, world, _ in
            await loop.run { _ in world.send(1...60) }
            try await world.allDone()
            await loop.run { _ in
                let isRejected = world.outcomes.values.allSatisfy {
                    if case .rejected(400, _, .absent) = $0 { true } else { false }
                }
                #expect(world.outcomes.count == 60 && isRejected && world.doubles == 0)
            }
        }
    }

    /// pushy, apns2 and NIO index every device token, which pushes all else out of Apple's small table.
    @Test func tokensStayOutOfTheHeaderTable() async throws {
        try await withSimulator { loop, world, simulator in
            await loop.run { _ in world.send(1...1_000) }
            try await world.allDone()
            await simulator.closeConnections()
            let peak = await simulator.counters.headerTablePeak
            #expect(peak > 0 && peak < 1_024)
        }
    }

    /// node-apn looks for `Retry-After` in a letter case that never comes, and repeats at once.
    @Test func retryAfterIsObeyed() async throws {
        let answer = #"{"status": 429, "reason": "TooManyRequests", "retry_after": 1}"#
        try await expectAllAccepted(
            #"{"rules": [{"match": {"count": 3}, "answer": \#(answer)}]}"#, count: 3
        ) { _, simulator in
            for lines in Dictionary(grouping: await simulator.entries, by: \.token).values {
                #expect(lines.count == 2 && lines[1].atMs - lines[0].atMs >= 950)
            }
        }
    }

    /// pushy waited without end where GOAWAY, or nothing, came in place of SETTINGS.
    @Test(arguments: ["close", "break", "mute", "goaway", "bytes"])
    func connectionThatNeverGreetsIsTriedAgain(kind: String) async throws {
        var limits = Self.patient
        limits.settingsTimeoutNanos = 300_000_000
        limits.pingAfterNanos = 100_000_000
        let extra = kind == "bytes" ? #", "hex": "485454502f312e312034303020426164""# : ""
        let scenario = #"{"on_connect": [{"match": {"count": 2}, "fault": {"kind": "\#(kind)"\#(extra)}}]}"#
        try await expectAllAccepted(scenario, count: 50, limits: limits) { _, simulator in
            #expect(await simulator.counters.faults == ["connect_" + kind: 2])
        }
    }

    /// What no answer of Apple's looks like, in the middle of good ones.
    @Test(arguments: [
        #""fault": {"kind": "close", "how": "record"}"#, #""fault": {"kind": "close", "how": "reset"}"#,
        #""fault": {"kind": "flood", "frame": "ping", "count": 3000}"#,
        #""fault": {"kind": "flood", "frame": "settings", "count": 3000}"#,
        #""fault": {"kind": "drip", "bytes": 700, "every_ms": 1}"#,
        // DATA on stream 0; HEADERS that no HPACK decoder can read; a frame of 16 MB announced.
        #""fault": {"kind": "bytes", "hex": "000001 00 00 00000000 00"}"#,
        #""fault": {"kind": "bytes", "hex": "000003 01 05 00000001 ffffff"}"#,
        #""fault": {"kind": "bytes", "hex": "ffffff 00 00 00000001"}"#,
        #""answer": {"status": 503, "body": "<html>"}"#, #""answer": {"status": 500, "body": "{\"reason\": 7"}"#,
        #""answer": {"status": 503, "reason": "ServiceUnavailable", "body_bytes": 3000000}"#,
        #""answer": {"body": "{\"reason\": \"BadDeviceToken\"}"}"#, #""answer": {"delay_ms": 80}"#,
    ])
    func nonsenseCostsNoPush(action: String) async throws {
        try await expectAllAccepted(#"{"rules": [{"match": {"every": 30, "count": 4}, \#(action)}]}"#)
    }

    /// 429 TooManyProviderTokenUpdates, by whichever theory: the older token goes on, nothing is lost.
    @Test(arguments: ["connection", "key"], [false, true])
    func renewalThatComesTooSoonIsTakenBack(scope: String, wedges: Bool) async throws {
        var limits = Self.patient
        limits.pingAfterNanos = 100_000_000
        limits.pingTimeoutNanos = 300_000_000
        limits.credentialProbeNanos = 30_000_000
        let scenario = #"""
            {"connection": {"token_throttle": {"scope": "\#(scope)", "wedge": \#(wedges)}},
             "rules": [{"match": {"skip": 20, "count": 1}, "answer": {"status": 403, "reason": "ExpiredProviderToken"}}]}
            """#
        try await expectAllAccepted(scenario, limits: limits)
    }

    /// Far from Apple and with large bodies a window of 64 KB is soon full; nothing may be half sent.
    @Test func farServerWithASmallWindowGetsEverything() async throws {
        let body = #"{"aps":{"alert":"\#(String(repeating: "x", count: 3_900))"}}"#
        try await withSimulator(scenario: #"{"connection": {"rtt_ms": 15}}"#) { loop, world, simulator in
            await loop.run { _ in
                world.expected = 120
                for tag in 1...120 as ClosedRange<UInt64> {
                    #expect(world.client.send(world.push(tag, payload: body)) == .taken)
                }
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 120) }
            // 16 bodies of 3.9 KB and no more fit a window.
            #expect(await simulator.counters.streamsPeak <= 17)
        }
    }
}
