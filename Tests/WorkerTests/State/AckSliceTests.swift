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
            let before = try await world.raw("DBSIZE") ?? 0
            outcome = try await world.step(&runner)
            taken += 1
            let written = try await world.raw("DBSIZE") ?? 0
            #expect(written - before <= 100 && written == min(taken * 100, count))
        }
        #expect(outcome == .applied(.none) && taken == steps)
        for id in ids { #expect(try await world.raw("SISMEMBER", "c:k1:{im:u}\(id)", "d") == 1) }
        await world.end()
    }
}
