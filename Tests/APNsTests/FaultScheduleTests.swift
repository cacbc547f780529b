// SPDX-License-Identifier: Apache-2.0
import Simulator
import Support
import Telemetry
import Testing

@testable import APNs

/// Whole schedules of faults drawn by seed, the client's outcomes joined with the simulator's ledger.
@Suite(.serialized, .timeLimit(.minutes(10))) struct FaultScheduleTests {
    private static let count: UInt64 = 800

    private static let faults = [
        #""fault": {"kind": "refuse_stream"}"#, #""fault": {"kind": "reset", "code": "CANCEL"}"#,
        #""fault": {"kind": "reset", "code": "PROTOCOL_ERROR"}"#, #""fault": {"kind": "close"}"#,
        #""fault": {"kind": "close", "how": "record"}"#, #""fault": {"kind": "close", "how": "reset"}"#,
        #""fault": {"kind": "goaway", "last": "none", "reason": "Shutdown"}"#,
        #""fault": {"kind": "goaway", "last": "this", "twice": true}"#,
        #""fault": {"kind": "goaway", "code": "INTERNAL_ERROR"}"#, #""fault": {"kind": "freeze"}"#,
        #""fault": {"kind": "freeze", "scope": "stream"}"#, #""fault": {"kind": "drip", "bytes": 900, "every_ms": 1}"#,
        #""fault": {"kind": "flood", "count": 500}"#, #""fault": {"kind": "bytes", "hex": "000001000000000000ff"}"#,
        #""answer": {"status": 503, "reason": "ServiceUnavailable"}"#,
        #""answer": {"status": 429, "reason": "TooManyRequests", "split_bytes": 5}"#,
        #""answer": {"status": 500, "body": ""}"#, #""answer": {"status": 400, "reason": "BadDeviceToken"}"#,
        #""answer": {"status": 410, "reason": "Unregistered", "timestamp": 1700000000000, "split_bytes": 3}"#,
        #""answer": {"status": 400, "reason": "NotOfThisWorld", "body_bytes": 30000}"#, #""answer": {"delay_ms": 60}"#,
    ]

    /// A schedule: eight of the faults, each for a few requests from a moment on, and perhaps bad connects and a far server.
    static func schedule(_ seed: UInt64) -> String {
        var random = SeededGenerator(seed: seed)
        let rules = faults.shuffled(using: &random).prefix(8).map {
            let skip = Int.random(in: 0...120, using: &random)
            let count = Int.random(in: 1...6, using: &random)
            let every = Int.random(in: 1...40, using: &random)
            return #"{"match": {"every": \#(every), "skip": \#(skip / every), "count": \#(count)}, \#($0)}"#
        }
        let connect = ["close", "break", "goaway", "mute"].randomElement(using: &random) ?? "close"
        let onConnect = #"{"match": {"every": 3, "count": 2}, "fault": {"kind": "\#(connect)"}}"#
        let roundTrip = [0, 0, 5].randomElement(using: &random) ?? 0
        let shrinks = Bool.random(using: &random)
        return #"""
            {"seed": \#(seed % 1000), "connection": {"rtt_ms": \#(roundTrip), "shrink_on_rejection": \#(shrinks)},
             "on_connect": [\#(onConnect)], "rules": [\#(rules.joined(separator: ", "))]}
            """#
    }

    private static var limits: APNsLimits {
        var limits = World.quick
        // Far above what a loaded machine needs: a deadline that answers miss only breeds more work.
        limits.answerNanos = 4_000_000_000
        limits.settingsTimeoutNanos = 2_000_000_000
        limits.pingAfterNanos = 200_000_000
        limits.pingTimeoutNanos = 2_000_000_000
        limits.unknownTries = 20
        limits.connectionsMax = 2
        return limits
    }

    /// No push without an outcome, none lost, none told twice, doubles only where a fate was unknown. One seed is new each
    /// time.
    @Test(arguments: [1, 2, 3, 4, 5, .random(in: 6 ... .max)] as [UInt64])
    func everyPushEndsOnceAndAsTheLedgerSays(seed: UInt64) async throws {
        let schedule = Self.schedule(seed)
        print("fault schedule with seed \(seed)")
        let note: Comment = "seed \(seed): \(schedule)"
        try await withSimulator(scenario: schedule, limits: Self.limits) { loop, world, simulator in
            await loop.run { _ in world.send(1...Self.count) }
            do {
                try await world.allDone()
            } catch {
                Issue.record(error, note)
                throw error
            }
            let lines = Dictionary(grouping: await simulator.entries, by: \.token)
            await loop.run { _ in
                #expect(world.outcomes.count == Int(Self.count) && world.doubles == 0, note)
                var doubles = 0
                for tag in 1...Self.count {
                    let seen = lines[world.push(tag).token.hex] ?? []
                    #expect(Set(seen.map(\.apnsID)).count == 1, note)
                    doubles += max(0, seen.count { $0.status == 200 } - 1)
                    switch world.outcomes[tag] {
                    case .accepted: #expect(seen.contains { $0.status == 200 }, note)
                    case .rejected(let status, _, _): #expect(seen.contains { $0.status == status }, note)
                    default:
                        let end = world.outcomes[tag].map { "\($0)" } ?? "nothing"
                        Issue.record("\(tag) ended as \(end); seed \(seed): \(schedule)")
                    }
                }
                let unknown = Int(world.client.context.metrics.ambiguous.value)
                #expect(doubles <= unknown, "\(doubles) doubles, \(unknown) unknown; seed \(seed): \(schedule)")
            }
        }
    }
}
