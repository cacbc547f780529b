// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

/// An `ack` of many messages goes in slices: none asks for more room than other work leaves, and what is written stays
/// written when a later slice has to be sent again.
@Suite(.timeLimit(.minutes(10)))
struct AckSliceTests {
    @Test(arguments: [(1, 1), (100, 1), (101, 2), (1_000, 10)])
    func manyIDsAreWrittenInSlices(count: Int, steps: Int) async throws {
        let world = try StateWorld()
        try await world.connect()
        let ids = (0..<count).map { "m\($0)" }
        var runner = StateWorld.TaskRunner(
            task: UserStateTask(
                app: StateWorld.app, sentMs: StateWorld.base, nowMs: StateWorld.base,
                state: UserState(uid: "u", change: .ack(device: "d", connectionEpoch: nil, msgIDs: ids))))
        var taken = 0
        var outcome: StateOutcome?
        while outcome == nil, taken <= steps {
            let before = try await world.raw("HLEN", "c:k:{im:u}") ?? 0
            outcome = try await world.step(&runner)
            taken += 1
            let written = try await world.raw("HLEN", "c:k:{im:u}") ?? 0
            #expect(written - before <= 100 && written == min(taken * 100, count))
        }
        #expect(outcome == .applied(.none) && taken == steps)
        for id in ids { #expect(try await world.text("HGET", "c:k:{im:u}", id).hasSuffix(" a1:d")) }
        await world.end()
    }

    /// One device's id ends like another's entry in the list.
    @Test func anAcknowledgementOfADeviceWithAnIDWithinAnothersIsKept() async throws {
        let world = try StateWorld()
        try await world.connect()
        for device in ["xa1:d", "d", "d"] {
            try await world.change("u", .ack(device: device, connectionEpoch: nil, msgIDs: ["m"]))
        }
        #expect(try await world.text("HGET", "c:k:{im:u}", "m").hasSuffix(" a5:xa1:da1:d"))
        await world.end()
    }

    /// Invented ids cost their user some of the oldest acknowledgements, and nobody else anything.
    @Test func aFloodOfAcknowledgementsStaysOneKeyOfABoundedSize() async throws {
        let world = try StateWorld()
        try await world.connect()
        for round in 0..<4 {
            let ids = (0..<1_000).map { "invented-\(round)-\($0)" }
            try await world.change("u", .ack(device: "d", connectionEpoch: nil, msgIDs: ids))
        }
        for device in 0..<600 {
            try await world.change("u", .ack(device: "device-\(device)", connectionEpoch: nil, msgIDs: ["m"]))
        }
        #expect(try await world.raw("DBSIZE") == 1)
        #expect(try await world.raw("HLEN", "c:k:{im:u}") == 1_024)
        #expect(try await world.text("HGET", "c:k:{im:u}", "m").hasSuffix("a10:device-599"), "the newest is kept")
        #expect(try await world.raw("HSTRLEN", "c:k:{im:u}", "m") ?? 0 <= 2_100)
        await world.end()
    }

    @Test func aFloodOfReportsStaysOneKeyOfABoundedSize() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<1_100 {
            let report = UserState.PushReport(device: "d", pid: "invented-\(index)", msgID: nil)
            #expect(try await world.change("u", .openReport(report)) == .applied(.none))
        }
        #expect(try await world.raw("DBSIZE") == 1)
        #expect(try await world.raw("HLEN", "c:p:{im:u}") == 1_024)
        await world.end()
    }
}
