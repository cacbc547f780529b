import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Redis remembers that a lower badge was not told, so that a crash between read and push loses nothing.
@Suite struct ClearOwedTests {
    @Test func aLoweredBadgeIsOwedUntilItWasTold() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        func owes(_ seq: Int64, at ms: Int64) async throws -> Bool {
            try await world.owesClear("u", .read(conversation: "c", upTo: .init(seq: seq)), at: ms)
        }
        #expect(try await !owes(1, at: 1), "nothing was counted, so nothing is lower")
        _ = try await world.claim(.message("u", "m", "c", sent: base + 2, seq: 2))
        #expect(try await owes(2, at: 3))
        #expect(try await owes(2, at: 3), "told again after a crash")
        #expect(try await owes(3, at: 4), "still")
        _ = try await world.ask({ try $0.badgeTold(app: StateWorld.app, uid: "u", tag: $1) }, { $0.int64 })
        #expect(try await !owes(3, at: 4))
        #expect(try await !owes(4, at: 5))
        await world.end()
    }

    @Test func whereItIsOffNothingIsRemembered() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claim(.message("u", "m", "c", sent: StateWorld.base + 2, seq: 2))
        try await world.change("u", .read(conversation: "c", upTo: .init(seq: 2)), at: 3)
        #expect(try await world.raw("HEXISTS", "c:s:{\(StateWorld.app):u}", "w") == 0)
        await world.end()
    }
}
